"""pFTree, Fig. 11: the bandwidth of the other partition if one partition has its own links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sar_lab.orcs import schedule_of, simulate
from sar_lab.papers.claims import NEAR, value
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.pftree_delays import network_of
from sar_lab.papers.pftree_trees import TREES, Table3Tree
from sar_lab.papers.pictures import COLOURS, LABELS
from sar_lab.papers.registry import ExperimentResult
from sar_lab.papers.worded_claims import PLAIN, Draws, judged
from sar_lab.statistics import Estimate, median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "pftree-fig11"
WHERE = "pftree-2016, Fig. 11"
CLASS = "S"
PUBLISHED = (
    "effective bisection bandwidth of the others: pFTree 0.76, 0.62 at 2:1 and 4:1 of the "
    "smallest trees, -31.75 % over the largest three; pFTree-Ext over 70 % of it at 2:1, 23.3 % "
    "at 1,024 nodes"
)
SEEDS = 10
PRINTED = {32: 0.76, 64: 0.62}
"""Nodes → pFTree's effective bisection bandwidth."""
RUNS = 500
FAMILIES = ((32, 48, 64), (128, 192, 256), (512, 768, 1024))
"""Nodes of trees that differ in oversubscription only, from 2:1 to 4:1."""
NODES = [tree.nodes for tree in TREES]
ENGINES = ("pftree-printed", "pftree-ext", "pftree", "ftree")


def bandwidth(tree: Table3Tree, engine: str, seeds: Sequence[int]) -> Estimate:
    """The share of full bandwidth while the others bisect and the victims are idle "
    "(hist_acc_band)."""
    means = []
    for seed in seeds:
        draw, network = network_of(tree, engine, seed)
        schedule = schedule_of("bisect::null", tree.nodes, len(draw.others))
        results = simulate(
            network, schedule, "hist_acc_band", runs=RUNS, seed=seed, group=draw.others
        )
        means.append(float(results.values.mean()))
    return median_of(means)


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """10 draws of victims on nine trees."""
    results = {
        (engine, tree.nodes): bandwidth(tree, engine, seeds) for tree in TREES for engine in ENGINES
    }
    share = {n: results["pftree-ext", n].value / results["pftree-printed", n].value for n in NODES}
    last = [results["pftree-printed", n].value for n in (512, 1024)]
    last_ext = [results["pftree-ext", n].value for n in (512, 1024)]
    engines = ("pftree-printed", "pftree-ext")
    twice: dict[str, list[Draws]] = {
        LABELS[engine]: [results[engine, n] for n in (32, 128, 512)] for engine in engines
    }
    families = [[results["pftree-printed", n].value for n in some] for some in FAMILIES]
    claims = [
        value("pFTree, 32 nodes, 2:1", PRINTED[32], results["pftree-printed", 32].value, NEAR),
        value("pFTree, 64 nodes, 4:1", PRINTED[64], results["pftree-printed", 64].value, NEAR),
        value("pFTree, largest three: loss in %", 31.75, 100 * (1 - last[1] / last[0]), NEAR),
        value("pFTree-Ext, largest three: loss in %", 76.7,
              100 * (1 - last_ext[1] / last_ext[0]), NEAR),
        judged("2:1: pFTree-Ext over 70 % of pFTree as printed on every tree", twice, PLAIN,
               ours=", ".join(f"{share[n]:.0%}" for n in (32, 128, 512))),
        value("pFTree-Ext, 1,024 nodes 4:1: % of pFTree", 23.3, 100 * share[1024], NEAR),
        judged("pFTree falls with oversubscription", {"pFTree": families}, PLAIN),
    ]  # fmt: skip
    rows = [
        [LABELS[engine], *(results[engine, tree.nodes].words() for tree in TREES)]
        for engine in ENGINES
    ]
    return outcome(
        out / f"{NAME}.png",
        claims,
        f"{len(seeds)} draws of victims, {RUNS} random bisections of the others each.",
        because="our pFTree-Ext takes links for a `phy` partition by its share of the hosts only, "
        "a quarter here, and leaves the others what is theirs",
        tables=[ResultTable(["bandwidth", *(str(tree.nodes) for tree in TREES)], rows)],
        draw=lambda figure: _draw(figure, results),
        size=(8.0, 3.8),
    )


def _draw(figure: Figure, results: dict[tuple[str, int], Estimate]) -> None:
    axes = figure.subplots()
    at = np.arange(len(TREES))
    for place, engine in enumerate(ENGINES):
        each = [results[engine, tree.nodes] for tree in TREES]
        means = np.array([estimate.value for estimate in each])
        bars = [
            means - [estimate.low for estimate in each],
            np.array([estimate.high for estimate in each]) - means,
        ]
        where = at + 0.2 * (place - 1.5)
        axes.bar(where, means, 0.19, color=COLOURS[engine], label=LABELS[engine])
        axes.errorbar(where, means, bars, fmt="none", ecolor="black", capsize=2, lw=0.8)
    places = [[t.nodes for t in TREES].index(nodes) - 0.3 for nodes in PRINTED]
    axes.plot(places, list(PRINTED.values()), "kD", ms=7, mfc="none", label="published, pFTree")
    axes.set_xticks(at, [f"{t.nodes}\n{t.oversubscription}:1" for t in TREES])
    draws = results[ENGINES[0], TREES[0].nodes].n
    axes.set(
        xlabel=f"nodes, oversubscription (n = {draws} draws of victims; bars: 95 % intervals)",
        ylabel="share of full bandwidth",
    )
    figure.legend(loc="outside upper center", ncols=5, fontsize="small")
