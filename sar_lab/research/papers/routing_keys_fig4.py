"""Routing Keys, Fig. 4: largest number of flows on a link, over the size of the network.

A folded Clos of n hosts has √n leaf switches of √n hosts, and √n middle switches, the fewest that
make it rearrangeably non-blocking. 60 % of the hosts send to as many others; the flows belong to
applications, each to any of n · 60 % / 10 with equal chance, so that an application has 10 on
average. Applications arrive one after the other. `dmodk` ignores this, ARK gives each application
its key unchanged, and NRK shifts the key for the applications that are already there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.dmodk import modulo_labels
from sar_agent.routing.keys import KeyTree, key_tree, unshifted
from sar_agent.routing.keys.key import digit_channels
from sar_lab.research.papers.claims import RESAMPLES, Claim
from sar_lab.research.papers.compared import MEANS, claim, compared
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS, band, legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import Estimate, bootstrap_of, median_of
from sar_lab.research.trace.phase_keys import KINDS

SAID = quotes("routing-keys-fig4")
SIDES = (8, 16, 24, 32, 40, 48, 56, 64)
LOAD, FLOWS = 0.6, 10
PRINTED = ("nrk-printed", "nrk-printed-links")
ENGINES = ("dmodk", "ark", "nrk", *PRINTED)


def routing_keys_fig4(seeds: Sequence[int]) -> Outcome:
    """Networks of n = 64 … 4,096 hosts."""
    results = [by_key(largest_of(side, list(seeds))) for side in SIDES]
    sizes = [side * side for side in SIDES]
    drawn = {
        e: [bootstrap_of(each[e], np.mean, resamples=RESAMPLES) for each in results]
        for e in ENGINES
    }
    printed = {LABELS[nrk]: claims_of(drawn | {"nrk": drawn[nrk]}, sizes) for nrk in PRINTED}
    cells = [
        [f"{n:,}", *(f"{median_of(each[e]).words(1)} · {drawn[e][i].value:.2f}" for e in ENGINES)]
        for i, (n, each) in enumerate(zip(sizes, results, strict=True))
    ]
    return Outcome(
        claims_of(drawn, sizes),
        as_printed=printed,
        tables=[ResultTable(["hosts", *(LABELS[e] for e in ENGINES)], cells)],
        draw=lambda figure: _draw(figure, drawn),
    )


def claims_of(drawn: Mapping[str, Sequence[Estimate]], sizes: Sequence[int]) -> list[Claim]:
    """What the text says that the figure shows."""
    few, many = sizes[0], sizes[-1]
    every = compared(drawn, MEANS)
    first = compared({engine: each[:1] for engine, each in drawn.items()}, MEANS)
    last = compared({engine: each[-1:] for engine, each in drawn.items()}, MEANS)
    mean = {e: f"mean {each[0].value:.2f} → {each[-1].value:.2f}" for e, each in drawn.items()}
    return [
        claim(last["dmodk"] > first["dmodk"],
              f"D-mod-k at {many:,} hosts above D-mod-k at {few:,} hosts",
              ours=mean["dmodk"], said=SAID["fast"]),
        claim(last["nrk"].not_above(first["nrk"]),
              f"NRK at {many:,} hosts not above NRK at {few:,} hosts",
              ours=mean["nrk"], said=SAID["low"]),
        claim(every["nrk"] < every["dmodk"], "NRK lower than D-mod-k at every size",
              said=SAID["low"]),
    ]  # fmt: skip


def clos(side: int) -> KeyTree:
    """A Clos network with `side` leaf switches, hosts per leaf switch, and middle switches."""
    return key_tree(load_fabric(f"xgft:2;{side},{side};1,{side}"))


@measured
def largest_of(side: int, seeds: list[int]) -> list[dict[str, int]]:
    """`largest` for each seed."""
    tree = clos(side)
    return [largest(tree, side, seed) for seed in seeds]


def largest(tree: KeyTree, side: int, seed: int) -> dict[str, int]:
    """Engine → the most flows on a link after all applications have arrived."""
    assert tree.view is not None
    random = np.random.default_rng([side, seed])
    hosts, flows = side * side, round(LOAD * side * side)
    source = random.permutation(hosts)[:flows].astype(np.int32)
    target = random.permutation(hosts)[:flows].astype(np.int32)
    other = source != target
    source, target = source[other], target[other]
    application = random.integers(0, max(1, round(flows / FLOWS)), len(source))
    size = tree.fabric.channels
    used = digit_channels(tree, source, target, modulo_labels(tree.view)[target])
    load = {engine: np.zeros(size, np.int64) for engine in ENGINES}
    load["dmodk"] = np.bincount(used[used >= 0], minlength=size)
    for number in random.permutation(int(application.max()) + 1):
        own = application == number
        some = source[own], target[own]
        for engine, of in load.items():
            if engine in KINDS:
                make, shift = KINDS[engine]
                key = make(tree, some)
                of += (shift(key, of) if shift else unshifted(key)).own
    return {engine: int(of.max()) for engine, of in load.items()}


def _draw(figure: Figure, mean: dict[str, list[Estimate]]) -> None:
    axes = figure.subplots()
    hosts = [side * side for side in SIDES]
    for engine, each in mean.items():
        band(axes, hosts, each, color=COLOURS[engine], marker="o", ms=4, label=LABELS[engine])
    draws = mean[ENGINES[0]][0].n
    axes.set(xlabel=f"hosts (mean of n = {draws} draws, bands: 95 % intervals of the mean)",
             ylabel="most flows on a link", ylim=(0, None))  # fmt: skip
    legend(figure, ncols=2, frameon=False)
