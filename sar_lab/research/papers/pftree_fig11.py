"""pFTree, Fig. 11: the bandwidth of the other partition if one partition has its own links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_lab.research.orcs import schedule_of, simulate
from sar_lab.research.papers import worded_claims
from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_delays import ENGINES, EXT, PLAIN, network_of
from sar_lab.research.papers.pftree_trees import TREES, Table3Tree
from sar_lab.research.papers.pictures import COLOURS, LABELS, bars
from sar_lab.research.papers.worded_claims import Draws, judged
from sar_lab.research.statistics import Estimate, median_of

WHERE = "pftree-2016, Fig. 11"
CLASS = "S"
PUBLISHED = (
    "effective bisection bandwidth of the others: pFTree 0.76, 0.62 at 2:1 and 4:1 of the "
    "smallest trees, -31.75 % over the largest three; pFTree-Ext 0.62 and 0.37 at 2:1 and 3:1 of "
    "the smallest, over 70 % of pFTree at 2:1, 23.3 % at 1,024 nodes, -76.7 % over the largest "
    "three"
)
SEEDS = 10
PRINTED = {32: 0.76, 64: 0.62}
"""Nodes → pFTree's effective bisection bandwidth."""
PRINTED_EXT = {32: 0.62, 48: 0.37}
"""The same of pFTree-Ext."""
WIDTH = 0.17
"""Of a bar, in the picture."""
RUNS = 500
FAMILIES = ((32, 48, 64), (128, 192, 256), (512, 768, 1024))
"""Nodes of trees that differ in oversubscription only, from 2:1 to 4:1."""
NODES = [tree.nodes for tree in TREES]


def bandwidth(tree: Table3Tree, engine: str, seeds: Sequence[int]) -> Estimate:
    """The share of full bandwidth while the others bisect and the victims are idle
    (hist_acc_band)."""
    means = []
    for seed in seeds:
        draw, network = network_of(tree, engine, seed)
        schedule = schedule_of("bisect::null", tree.nodes, len(draw.others))
        results = simulate(
            network, schedule, "hist_acc_band", runs=RUNS, seed=seed, group=draw.others
        )
        means.append(float(results.values.mean()))
    return median_of(means)


def run(seeds: Sequence[int]) -> Outcome:
    """10 draws of victims on nine trees."""
    results = {
        (engine, tree.nodes): bandwidth(tree, engine, seeds) for tree in TREES for engine in ENGINES
    }
    mean = {key: found.value for key, found in results.items()}
    share = {n: mean[EXT, n] / mean[PLAIN, n] for n in NODES}
    loss = {e: 100 * (1 - mean[e, 1024] / mean[e, 512]) for e in (PLAIN, EXT)}
    twice: dict[str, list[Draws]] = {
        name: [results[engine, n] for n in (32, 128, 512)]
        for name, engine in (("pFTree-Ext", EXT), (LABELS[PLAIN], PLAIN))
    }
    families = [[mean[PLAIN, n] for n in some] for some in FAMILIES]
    claims = [
        value("pFTree, 32 nodes, 2:1", PRINTED[32], mean[PLAIN, 32], NEAR),
        value("pFTree, 64 nodes, 4:1", PRINTED[64], mean[PLAIN, 64], NEAR),
        value("pFTree, largest three: loss in %", 31.75, loss[PLAIN], NEAR),
        value("pFTree-Ext, 32 nodes, 2:1", PRINTED_EXT[32], mean[EXT, 32], NEAR),
        value("pFTree-Ext, 48 nodes, 3:1", PRINTED_EXT[48], mean[EXT, 48], NEAR),
        value("pFTree-Ext, largest three: loss in %", 76.7, loss[EXT], NEAR),
        judged("2:1: pFTree-Ext over 70 % of pFTree as printed on every tree", twice,
               worded_claims.PLAIN, ours=", ".join(f"{share[n]:.0%}" for n in (32, 128, 512))),
        value("pFTree-Ext, 1,024 nodes 4:1: % of pFTree", 23.3, 100 * share[1024], NEAR),
        judged("pFTree falls with oversubscription", {"pFTree": families}, worded_claims.PLAIN),
    ]  # fmt: skip
    rows = [
        [LABELS[engine], *(results[engine, tree.nodes].words() for tree in TREES)]
        for engine in ENGINES
    ]
    return Outcome(
        claims,
        f"{len(seeds)} draws of victims, {RUNS} random bisections of the others each. pFTree-Ext "
        "without a quota lets a `phy` partition take a way up for each of its hosts at a leaf, "
        "but never the last; our pFTree-Ext gives it its share of the hosts, a quarter here, and "
        "leaves the others what is theirs.",
        tables=[ResultTable(["bandwidth", *(str(tree.nodes) for tree in TREES)], rows)],
        draw=lambda figure: _draw(figure, results),
        size=(8.6, 4.2),
    )


def _draw(figure: Figure, results: dict[tuple[str, int], Estimate]) -> None:
    axes = figure.subplots()
    at = np.arange(len(TREES))
    for place, engine in enumerate(ENGINES):
        each = [results[engine, tree.nodes] for tree in TREES]
        where = at + WIDTH * (place - 2)
        bars(axes, where, each, 0.95 * WIDTH, color=COLOURS[engine], label=LABELS[engine],
             capsize=2)  # fmt: skip
    for place, (printed, mark, label) in enumerate(
        ((PRINTED, "kD", "pFTree"), (PRINTED_EXT, "ks", "pFTree-Ext"))
    ):
        places = [NODES.index(nodes) + WIDTH * (place - 2) for nodes in printed]
        axes.plot(places, list(printed.values()), mark, ms=6, mfc="none",
                  label=f"published, {label}")  # fmt: skip
    axes.set_xticks(at, [f"{t.nodes}\n{t.oversubscription}:1" for t in TREES])
    draws = results[ENGINES[0], TREES[0].nodes].n
    axes.set(
        xlabel=f"nodes, oversubscription (n = {draws} draws of victims; bars: 95 % intervals)",
        ylabel="share of full bandwidth",
    )
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
