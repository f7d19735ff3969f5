"""pFTree, Fig. 10: delays of a victim partition with and without noise, over all trees of Table
3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sar_lab.research.papers import worded_claims as judges
from sar_lab.research.papers.claims import NEAR, Claim, times_as_much, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_delays import (
    ENGINES,
    EXT,
    PATTERNS,
    PLAIN,
    READINGS,
    SHORT,
    Delays,
    delays,
)
from sar_lab.research.papers.pftree_trees import TREES, Table3Tree
from sar_lab.research.papers.pictures import COLOURS, LABELS, legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.worded_claims import Draws, judged
from sar_lab.research.statistics import Estimate

SAID = quotes("pftree-fig10")
RUNS = 500
NOISES = ("null", "alltoall")
PRINTED = {
    "bisect": ((1024, SAID["noisy"].number, True),),
    "gather": tuple(
        (nodes, number, noisy)
        for nodes in (512, 1024)
        for noisy, number in enumerate(SAID[f"gather-{nodes}"].numbers[:2])
    ),
}
"""Pattern → (nodes, delay of pFTree, with noise?)."""
Key = tuple[str, int, str, str]
"""Pattern, nodes, engine, noise."""
Results = Mapping[Key, Delays]
SHOWN = (PLAIN, SHORT, EXT)
"""In the picture: `ftree` and our own engines coincide with one of these."""


def pftree_fig10(seeds: Sequence[int]) -> Outcome:
    """Draws of victims on nine trees."""
    results: dict[Key, Delays] = {}
    for tree in TREES:
        for engine in ENGINES:
            for pattern in PATTERNS:
                for noise in NOISES:
                    key = (pattern, tree.nodes, engine, noise)
                    results[key] = delays(tree, engine, pattern, noise, seeds, RUNS)

    halves = {
        t.nodes: _ratio(results, "alltoall", (EXT, "null"), (PLAIN, "null"), t.nodes) for t in TREES
    }
    words = ", ".join(f"{n}: {each.words()}" for n, each in halves.items())
    return Outcome(
        _claims(results, PLAIN),
        as_printed={LABELS[engine]: _claims(results, engine) for engine in READINGS},
        words={"halves": words},
        tables=[_table(results, pattern) for pattern in PATTERNS],
        draw=lambda figure: _draw(figure, results),
    )


def _claims(results: Results, plain: str) -> list[Claim]:
    def means(pattern: str, noise: str, trees: Sequence[Table3Tree] = TREES) -> list[float]:
        return [results[pattern, t.nodes, plain, noise].mean.value for t in trees]

    ext = {
        f"pFTree-Ext {words} noise": [
            [found.least, found.mean.value, found.most]
            for pattern in PATTERNS
            for found in (results[pattern, t.nodes, EXT, noise] for t in TREES)
        ]
        for words, noise in (("with", "alltoall"), ("without", "null"))
    }
    most = max(means("bisect", "null"))
    last = TREES[-1:]
    claims = [
        judged(
            "five patterns: pFTree-Ext with noise equals pFTree-Ext without noise at every point",
            ext, judges.PLAIN, said=SAID["ext"],
        ),
        judged("bisect without noise: the largest delay below 10", {"the largest delay": [most]},
               judges.PLAIN, ours=f"{most:.1f}", said=SAID["quiet"]),
        value("bisect, 1024 nodes, pFTree under noise", SAID["noisy"],
              means("bisect", "alltoall", last)[0], NEAR, 1),
    ]  # fmt: skip
    for tree in (t for t in TREES if t.nodes in (512, 1024)):
        quote = SAID[f"gather-{tree.nodes}"]
        quiet, under = quote.numbers[:2]
        ours = means("gather", "null", [tree])[0]
        added = means("gather", "alltoall", [tree])[0] - ours
        says = f"gather, {tree.nodes} nodes, pFTree"
        claims += [
            value(f"{says}: without noise", quiet, ours, NEAR, 1, said=quote),
            value(f"{says}: what noise adds", under - quiet, added, NEAR, 1, said=quote),
        ]
    noisy: dict[str, list[Draws]] = {
        "the delay": [means("bisect", "alltoall", TREES[i : i + 3]) for i in (0, 3, 6)]
    }
    at_last: dict[str, list[Draws]] = {
        words: [results["bisect", 1024, plain, noise].draws]
        for words, noise in (("the delay at 1,024 nodes", "alltoall"), ("that without it", "null"))
    }
    twice = [a / b for a, b in zip(means("alltoall", "alltoall"), means("alltoall", "null"),
             strict=True)]  # fmt: skip
    half = min(_ratio(results, "alltoall", (EXT, "null"), (plain, "null"), t.nodes).value
               for t in TREES)  # fmt: skip
    return [
        *claims,
        judged("bisect, pFTree under noise: the delay grows with oversubscription", noisy,
               said=SAID["grows"]),
        judged("bisect, pFTree under noise: the delay at 1,024 nodes over 10 times that without it",
               at_last, said=SAID["noisy"]),
        value("alltoall, pFTree: with noise, times that without, median of the trees",
              SAID["twice"], float(np.median(twice)), NEAR),
        value("alltoall without noise: pFTree-Ext, share of pFTree, least of the trees",
              SAID["half"].number / 100, half, NEAR, said=SAID["half"]),
    ]  # fmt: skip


def _ratio(
    results: Results, pattern: str, slow: tuple[str, str], fast: tuple[str, str], n: int
) -> Estimate:
    """How many times the delay of (engine, noise) `slow` is that of `fast`, draw by draw."""
    return times_as_much(results[pattern, n, *slow].draws, results[pattern, n, *fast].draws)


def _table(results: Results, pattern: str) -> ResultTable:
    rows = [
        [LABELS[e], noise, *(results[pattern, t.nodes, e, noise].mean.words(1) for t in TREES)]
        for e in ENGINES
        for noise in NOISES
    ]
    return ResultTable([pattern, "noise", *(str(t.nodes) for t in TREES)], rows)


def _draw(figure: Figure, results: Results) -> None:
    """Arrows from the delay without noise to that with it, for the engines that differ."""
    places = figure.subplots(1, len(PATTERNS), sharey=True)
    for axes, pattern in zip(places, PATTERNS, strict=True):
        for place, engine in enumerate(SHOWN):
            quiet, noisy = (
                np.array([results[pattern, t.nodes, engine, noise].mean.value for t in TREES])
                for noise in NOISES
            )
            where = np.arange(len(TREES)) + 0.25 * (place - 1)
            axes.vlines(where, quiet, noisy, color=COLOURS[engine], lw=1.5)
            axes.plot(where, quiet, "o", ms=3, mfc="white", color=COLOURS[engine])
            axes.plot(where, noisy, "o", ms=3, color=COLOURS[engine], label=LABELS[engine])
        for nodes, number, noisy_ in PRINTED.get(pattern, ()):
            at = [t.nodes for t in TREES].index(nodes)
            axes.plot([at - 0.25], [number], "*k" if noisy_ else "Dk", ms=7,
                      mfc="black" if noisy_ else "none",
                      label=f"published, pFTree, {'noise' if noisy_ else 'no noise'}")  # fmt: skip
        axes.set(title=pattern, yscale="log")
        axes.set_xticks(range(len(TREES)), [str(t.nodes) for t in TREES], rotation=90, fontsize=7)
    draws = results[PATTERNS[0], TREES[0].nodes, ENGINES[0], "null"].mean.n
    places[0].set_ylabel(f"mean delay, n = {draws} draws\n(open: no noise, filled: noise)")
    places[2].set_xlabel("nodes of the tree")
    legend(figure, ncols=5, fontsize="small")
