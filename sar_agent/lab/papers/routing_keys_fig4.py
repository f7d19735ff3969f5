"""Routing Keys, Fig. 4: largest number of flows on a link, over the size of the network.

A folded Clos of n hosts has √n leaf switches of √n hosts, and √n middle switches, the fewest that
make it rearrangeably non-blocking. 60 % of the hosts send to as many others; the flows belong to
applications, each to any of n · 60 % / 10 with equal chance, so that an application has 10 on
average. Applications come one after the other: `dmodk` does not care, ARK gives each its key as it
is made, NRK shifts it for those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sar_agent.lab.papers.claims import order
from sar_agent.lab.papers.outcome import Table, outcome
from sar_agent.lab.papers.pictures import COLOURS, LABELS
from sar_agent.lab.papers.registry import Result
from sar_agent.lab.statistics import Estimate, median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "routing-keys-fig4"
WHERE = "Routing Keys 2017, Figure 4"
CLASS = "S"
PUBLISHED = "D-mod-k's largest contention grows with n, NRK's stays low (no numbers in print)"
SEEDS = 20
SIDES = (8, 16, 24, 32, 40, 48, 56, 64)
LOAD, FLOWS = 0.6, 10
ENGINES = ("dmodk", "ark", "nrk")


def run(seeds: Sequence[int], out: Path) -> Result:
    """n = 64 … 4,096."""
    most: dict[str, dict[int, list[int]]] = {e: {s * s: [] for s in SIDES} for e in ENGINES}
    for side in SIDES:
        tree = _tree(side)
        for seed in seeds:
            for engine, flows in largest(tree, side, seed).items():
                most[engine][side * side].append(flows)
    rows = {e: {n: median_of(draws) for n, draws in of.items()} for e, of in most.items()}
    few, many = SIDES[0] ** 2, SIDES[-1] ** 2
    dmodk, nrk = rows["dmodk"], rows["nrk"]
    between = "{0:g} at {2} hosts, {1:g} at {3}".format
    claims = [
        order(
            "D-mod-k grows with n (intervals apart)",
            dmodk[few].high < dmodk[many].low,
            between(dmodk[few].value, dmodk[many].value, few, many),
        ),
        order(
            "NRK does not grow",
            nrk[many].value <= nrk[few].value,
            between(nrk[few].value, nrk[many].value, few, many),
        ),
        order(f"NRK is below D-mod-k at {many} hosts", nrk[many].high < dmodk[many].low),
    ]
    return outcome(
        out / f"{NAME}.png",
        claims,
        "Applications come in an order drawn; each flow's route is that of its application's key. "
        "Most flows on a link when all are there.",
        tables=[
            Table(
                ["hosts", *map(str, nrk)],
                [[LABELS[e], *(one.words(1) for one in of.values())] for e, of in rows.items()],
            )
        ],
        draw=lambda figure: _draw(figure, rows),
        size=(6.0, 3.6),
    )


def _tree(side: int) -> Any:
    from sar_agent.fabric.spec import load_fabric
    from sar_agent.routing.keys import key_tree

    return key_tree(load_fabric(f"xgft:2;{side},{side};1,{side}"))


def largest(tree: Any, side: int, seed: int) -> dict[str, int]:
    """By engine: most flows on a link when all applications are there."""
    import numpy as np

    from sar_agent.routing.keys import as_made, choose_shift, make_key
    from sar_agent.routing.keys.key import digit_channels
    from sar_agent.routing.oblivious import modulo_labels

    random = np.random.default_rng([side, seed])
    hosts, flows = side * side, round(LOAD * side * side)
    source = random.permutation(hosts)[:flows].astype(np.int32)
    target = random.permutation(hosts)[:flows].astype(np.int32)
    other = source != target
    source, target = source[other], target[other]
    application = random.integers(0, max(1, round(flows / FLOWS)), len(source))
    size = tree.fabric.channels
    digits = modulo_labels(tree.view)[target]
    used = digit_channels(tree, source, target, digits)
    load = {
        "dmodk": np.bincount(used[used >= 0], minlength=size),
        "ark": np.zeros(size, np.int64),
        "nrk": np.zeros(size, np.int64),
    }
    for one in random.permutation(int(application.max()) + 1):
        mine = application == one
        key = make_key(tree, [(source[mine], target[mine])])
        load["ark"] += as_made(key).own
        load["nrk"] += choose_shift(key, load["nrk"]).own
    return {engine: int(of.max()) for engine, of in load.items()}


def _draw(figure: Figure, rows: dict[str, dict[int, Estimate]]) -> None:
    axes = figure.subplots()
    for engine, of in rows.items():
        each, colour = list(of.values()), COLOURS[engine]
        axes.fill_between(
            list(of), [one.low for one in each], [one.high for one in each], color=colour, alpha=0.2
        )
        axes.plot(
            list(of), [one.value for one in each], color=colour, marker=".", label=LABELS[engine]
        )
    axes.set(xlabel="hosts", ylabel="most flows on a link", ylim=0)
    axes.legend()
