"""pFTree, Fig. 10: delays of a victim partition with and without noise, over all trees of Table
3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_lab.research.papers import worded_claims
from sar_lab.research.papers.claims import NEAR, Claim, times_as_much, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_delays import ENGINES, EXT, PATTERNS, PLAIN, Delays, delays
from sar_lab.research.papers.pftree_table4 import NO_NOISE
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.pictures import COLOURS, LABELS, spans
from sar_lab.research.papers.worded_claims import Draws, judged
from sar_lab.research.statistics import Estimate

WHERE = "pftree-2016, Fig. 10"
CLASS = "S"
PUBLISHED = (
    "pFTree-Ext: noise changes nothing; pFTree: up to 2,498 under noise (bisect, 1,024 nodes), "
    "below 10 without; gather 127 and 152 (512 nodes), 255 and 1,696 (1,024)"
)
SEEDS = 10
RUNS = 500
NOISES = ("null", "alltoall")
PRINTED = {
    "bisect": ((1024, 2498, True),),
    "gather": ((512, 127, False), (512, 152, True), (1024, 255, False), (1024, 1696, True)),
}
"""Pattern → (nodes, delay of pFTree, with noise?)."""
Key = tuple[str, int, str, str]
"""Pattern, nodes, engine, noise."""


def run(seeds: Sequence[int]) -> Outcome:
    """Draws of victims on nine trees."""
    results: dict[Key, Delays] = {}
    for tree in TREES:
        for engine in ENGINES:
            for pattern in PATTERNS:
                for noise in NOISES:
                    key = (pattern, tree.nodes, engine, noise)
                    results[key] = delays(tree, engine, pattern, noise, seeds, RUNS)

    def mean(pattern: str, nodes: int, engine: str, noise: str) -> float:
        return results[pattern, nodes, engine, noise].mean.value

    def of_trees(pattern: str, engine: str, noise: str) -> list[float]:
        return [mean(pattern, t.nodes, engine, noise) for t in TREES]

    ext = {
        f"pFTree-Ext {words} noise": [
            [found.least, found.mean.value, found.most]
            for pattern in PATTERNS
            for found in (results[pattern, t.nodes, EXT, noise] for t in TREES)
        ]
        for words, noise in (("with", "alltoall"), ("without", "null"))
    }
    gathers = {
        "pFTree": of_trees("gather", PLAIN, "null"),
        "victims - 1": [t.victims - 1.0 for t in TREES],
    }
    most = max(max(of_trees("bisect", e, "null")) for e in ENGINES[:2])
    claims: list[Claim] = [
        judged(
            "five patterns: pFTree-Ext with noise equals pFTree-Ext without noise at every point",
            ext,
            worded_claims.PLAIN,
        ),
        judged(
            "gather without noise: pFTree equals victims - 1 on every tree",
            gathers,
            worded_claims.PLAIN,
        ),
        judged(
            "bisect without noise: the largest delay below 10",
            {"the largest delay": [most]},
            worded_claims.PLAIN,
            ours=f"{most:.1f}",
        ),
    ]
    claims.append(
        value(
            "bisect, 1024 nodes, pFTree under noise",
            2498,
            mean("bisect", 1024, PLAIN, "alltoall"),
            NEAR,
            1,
        )
    )
    for nodes, number in ((512, 152 - 127), (1024, 1696 - 255)):
        quiet = mean("gather", nodes, PLAIN, "null")
        added = mean("gather", nodes, PLAIN, "alltoall") - quiet
        claims.append(value(f"gather, {nodes} nodes, pFTree: what noise adds", number, added, NEAR))
    last = TREES[-1].nodes
    noisy: dict[str, list[Draws]] = {
        "the delay": [[mean("bisect", t.nodes, PLAIN, "alltoall") for t in TREES[-3:]]],
        "that at 1,024 nodes": [results["bisect", last, PLAIN, "alltoall"].draws],
        "that without noise": [results["bisect", last, PLAIN, "null"].draws],
    }
    times = _ratio(results, "bisect", (PLAIN, "alltoall"), (PLAIN, "null"), last)
    claims.append(
        judged(
            "bisect, pFTree under noise: the delay grows with oversubscription, and that at 1,024 "
            "nodes over 10 times that without noise",
            noisy,
            ours=f"{times.words()} times",
        )
    )
    halves = {
        t.nodes: _ratio(results, "alltoall", (EXT, "null"), (PLAIN, "null"), t.nodes) for t in TREES
    }
    half = min(halves.values(), key=lambda each: each.value)
    claims.append(
        value(
            "alltoall without noise: pFTree-Ext, share of pFTree, least of the trees",
            0.5, half.value, NEAR,
        )
    )  # fmt: skip
    words = ", ".join(f"{n}: {each.words()}" for n, each in halves.items())
    return Outcome(
        claims,
        f"{len(seeds)} draws of victims, each routed and simulated {RUNS} times. Scatter is "
        "shown, but not judged (ERRATA). Ratios are of the same draws. pFTree-Ext has no quota of "
        f"ways, as in pftree-fig11; its all-to-all takes, as a share of pFTree's, {words}.",
        because=NO_NOISE,
        tables=[_table(results, pattern) for pattern in PATTERNS],
        draw=lambda figure: _draw(figure, results),
        size=(9.5, 6.0),
    )


def _ratio(
    results: dict[Key, Delays], pattern: str, slow: tuple[str, str], fast: tuple[str, str], n: int
) -> Estimate:
    """How many times the delay of (engine, noise) `slow` is that of `fast`, draw by draw."""
    return times_as_much(results[pattern, n, *slow].draws, results[pattern, n, *fast].draws)


def _table(results: dict[Key, Delays], pattern: str) -> ResultTable:
    rows = [
        [LABELS[e], noise, *(results[pattern, t.nodes, e, noise].mean.words(1) for t in TREES)]
        for e in ENGINES
        for noise in NOISES
    ]
    return ResultTable([pattern, "noise", *(str(t.nodes) for t in TREES)], rows)


def _draw(figure: Figure, results: dict[Key, Delays]) -> None:
    """With noise as filled marks and lines, without as open marks; engines stand side by side,
    since three of the four coincide."""
    places = figure.subplots(2, 3).ravel()
    at = np.arange(len(TREES))
    for axes, pattern in zip(places, PATTERNS, strict=False):
        for place, engine in enumerate(ENGINES):
            where = at + 0.15 * (place - 2)
            for noise, fill in (("alltoall", COLOURS[engine]), ("null", "white")):
                each = [results[pattern, t.nodes, engine, noise].mean for t in TREES]
                label = f"{LABELS[engine]}, {'noise' if noise != 'null' else 'no noise'}"
                axes.errorbar(where, [e.value for e in each], spans(each), fmt="o", ms=3.5,
                              color=COLOURS[engine], mfc=fill, capsize=1.5, lw=0.8,
                              label=label)  # fmt: skip
        for nodes, number, noisy in PRINTED.get(pattern, ()):
            where = np.array([[t.nodes for t in TREES].index(nodes)])
            axes.plot(where, [number], "k*" if noisy else "kD", mfc="black" if noisy else "none",
                      label=f"published, pFTree, {'noise' if noisy else 'no noise'}")  # fmt: skip
        axes.set(title=pattern, yscale="log")
        axes.set_xticks(at, [f"{t.nodes}\n{t.oversubscription}:1" for t in TREES], fontsize=6)
    places[0].set_ylabel("mean delay")
    places[3].set_ylabel("mean delay")
    places[5].axis("off")
    lines, names = places[1].get_legend_handles_labels()
    some = dict(zip(names, lines, strict=True))
    draws = results[PATTERNS[0], TREES[0].nodes, ENGINES[0], "null"].mean.n
    title = f"n = {draws} draws of victims\nbars: 95 % intervals"
    places[5].legend(some.values(), some.keys(), fontsize=7, loc="center", title=title)
