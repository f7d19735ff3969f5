"""pFTree, Fig. 11: the bandwidth of the other partition if one partition has its own links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_lab.research.orcs import schedule_of, simulate
from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.compared import PLAIN as PLAINLY
from sar_lab.research.papers.compared import claim, compared, falls
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_delays import (
    ENGINES,
    EXT,
    PLAIN,
    READINGS,
    SHORT,
    network_of,
    rule_of,
)
from sar_lab.research.papers.pftree_trees import TREES, Table3Tree
from sar_lab.research.papers.pictures import COLOURS, LABELS, bars
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import Estimate, median_of

SAID = quotes("pftree-fig11")
PRINTED = dict(zip((32, 64), SAID["pftree"].numbers, strict=False))
"""Nodes → pFTree's effective bisection bandwidth."""
PRINTED_EXT = {32: SAID["ext"].numbers[0], 48: SAID["ext"].numbers[3]}
"""The same of pFTree-Ext."""
SHOWN = (PLAIN, SHORT, EXT, "pftree-ext", "ftree")
WIDTH = 0.17
"""Of a bar, in the picture."""
RUNS = 500
FAMILIES = ((32, 48, 64), (128, 192, 256), (512, 768, 1024))
"""Nodes of trees that differ in oversubscription only, from 2:1 to 4:1."""
NODES = [tree.nodes for tree in TREES]


@measured
def bandwidths(tree: Table3Tree, engine: str, seeds: list[int]) -> list[float]:
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
    return means


def pftree_fig11(seeds: Sequence[int]) -> Outcome:
    """10 draws of victims on nine trees."""
    results = {
        (engine, tree.nodes): median_of(bandwidths(tree, rule_of(tree, engine), list(seeds)))
        for tree in TREES
        for engine in ENGINES
    }
    rows = [
        [LABELS[engine], *(results[engine, tree.nodes].words() for tree in TREES)]
        for engine in ENGINES
    ]
    return Outcome(
        _claims(results, PLAIN),
        as_printed={LABELS[engine]: _claims(results, engine) for engine in READINGS},
        tables=[ResultTable(["bandwidth", *(str(tree.nodes) for tree in TREES)], rows)],
        draw=lambda figure: _draw(figure, results),
    )


def _claims(results: dict[tuple[str, int], Estimate], plain: str) -> list[Claim]:
    mean = {key: found.value for key, found in results.items()}
    share = {n: mean[EXT, n] / mean[plain, n] for n in NODES}
    loss = {e: 100 * (1 - mean[e, 1024] / mean[e, 512]) for e in (plain, EXT)}
    twice = compared({e: [results[e, n] for n in (32, 128, 512)] for e in (plain, EXT)}, PLAINLY)
    families = [[mean[plain, n] for n in some] for some in FAMILIES]
    return [
        *(value(f"pFTree, {n} nodes", number, mean[plain, n], NEAR, said=SAID["pftree"])
          for n, number in PRINTED.items()),
        value("pFTree, largest three: loss in %", SAID["pftree-last"], loss[plain], NEAR),
        *(value(f"pFTree-Ext, {n} nodes", number, mean[EXT, n], NEAR, said=SAID["ext"])
          for n, number in PRINTED_EXT.items()),
        value("pFTree-Ext, largest three: loss in %", SAID["ext-last"], loss[EXT], NEAR),
        claim(twice[EXT] > 0.7 * twice[plain],
              "2:1: pFTree-Ext over 70 % of pFTree on every tree",
              ours=", ".join(f"{share[n]:.0%}" for n in (32, 128, 512)), said=SAID["share"]),
        value("pFTree-Ext, 1,024 nodes 4:1: % of pFTree", SAID["share-1024"],
              100 * share[1024], NEAR),
        claim(falls(families), "pFTree falls with oversubscription", said=SAID["linear"]),
    ]  # fmt: skip


def _draw(figure: Figure, results: dict[tuple[str, int], Estimate]) -> None:
    axes = figure.subplots()
    at = np.arange(len(TREES))
    for place, engine in enumerate(SHOWN):
        each = [results[engine, tree.nodes] for tree in TREES]
        where = at + WIDTH * (place - 2)
        bars(axes, where, each, 0.95 * WIDTH, color=COLOURS[engine], label=LABELS[engine],
             capsize=2)  # fmt: skip
    for place, (printed, mark, label) in enumerate(
        ((PRINTED, "kD", "pFTree"), (PRINTED_EXT, "ks", "pFTree-Ext"))
    ):
        places = [NODES.index(nodes) + WIDTH * (2 * place - 2) for nodes in printed]
        axes.plot(places, list(printed.values()), mark, ms=6, mfc="none",
                  label=f"published, {label}")  # fmt: skip
    axes.set_xticks(at, [f"{t.nodes}\n{t.oversubscription}:1" for t in TREES])
    draws = results[ENGINES[0], TREES[0].nodes].n
    axes.set(
        xlabel=f"nodes, oversubscription (n = {draws} draws of victims; bars: 95 % intervals)",
        ylabel="share of full bandwidth",
    )
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
