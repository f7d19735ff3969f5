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
from typing import Any

from sar_agent.lab.papers.registry import Result

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
    from sar_agent.lab.papers.statistics import spread

    most: dict[str, dict[int, list[int]]] = {e: {s * s: [] for s in SIDES} for e in ENGINES}
    for side in SIDES:
        tree = _tree(side)
        for seed in seeds:
            for engine, flows in largest(tree, side, seed).items():
                most[engine][side * side].append(flows)
    rows = {e: {n: spread(values) for n, values in of.items()} for e, of in most.items()}
    ours: dict[str, Any] = {
        e: {str(n): s._asdict() | {"all": most[e][n]} for n, s in of.items()}
        for e, of in rows.items()
    }
    ours["seeds"] = len(seeds)
    least, largest_n = SIDES[0] ** 2, SIDES[-1] ** 2
    dmodk, nrk = rows["dmodk"], [s.median for s in rows["nrk"].values()]
    grows = dmodk[least].high < dmodk[largest_n].low
    flat = nrk[-1] <= nrk[0] and nrk[-1] < dmodk[largest_n].median
    between = (
        f"D-mod-k {dmodk[least].median:g} → {dmodk[largest_n].median:g}, NRK {nrk[0]:g} → "
        f"{nrk[-1]:g} (medians at {least} and {largest_n} hosts, {len(seeds)} seeds)"
    )
    verdict = f"reproduced: {between}" if grows and flat else f"not: {between}"
    lines = [f"{'hosts':>6}  " + "  ".join(f"{e:>20}" for e in ENGINES) + "   mean [95 %] median"]
    for n in rows["nrk"]:
        cells = [rows[e][n] for e in ENGINES]
        lines.append(
            f"{n:>6}  "
            + "  ".join(f"{c.mean:5.2f} [{c.low:.2f}, {c.high:.2f}] {c.median:g}" for c in cells)
        )
    picture = _draw(rows, out / f"{NAME}.png")
    return Result(ours, verdict, "\n".join(lines), picture)


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


def _draw(rows: dict[str, dict[int, Any]], path: Path) -> Path | None:
    """None without matplotlib, which only pictures need."""
    try:
        import matplotlib as mpl
    except ImportError:
        return None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"dmodk": "#8a8a8a", "ark": "#d1495b", "nrk": "#1b6ac9"}
    with plt.rc_context({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9}):
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        for engine, of in rows.items():
            hosts, values = list(of), list(of.values())
            axes.fill_between(
                hosts, [v.low for v in values], [v.high for v in values],
                color=colours[engine], alpha=0.2, lw=0,
            )  # fmt: skip
            axes.plot(
                hosts, [v.mean for v in values], color=colours[engine], marker="o", ms=4,
                label={"dmodk": "D-mod-k", "ark": "ARK", "nrk": "NRK"}[engine],
            )  # fmt: skip
        axes.set(xlabel="hosts", ylabel="most flows on a link", ylim=(0, None))
        axes.grid(color="#e3e3e3")
        axes.legend(frameon=False)
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return path
