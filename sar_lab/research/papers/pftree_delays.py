"""pFTree, Fig. 10 and Table 4: delays of a victim partition with and without noise (pftree-2016,
Section 6.3), as ORCS counts them.

pFTree is the printed version, with both of its rules for ties and as a hypothesis has it.
pFTree-Ext is the printed one, too, but on trees of 4:1, where the print does not end: there a
partition may take a way up for each of its hosts at a leaf, but never the last, a rule that was
fitted. For comparison there are our own versions of both, and `ftree`, which ignores partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sar_lab.research.orcs import Network, network_of_routes, schedule_of, simulate
from sar_lab.research.papers.claims import EXACT, NEAR, Claim, times_as_much, value
from sar_lab.research.papers.compared import MEDIANS, Compared, claim, compared, grows
from sar_lab.research.papers.compared import PLAIN as PLAINLY
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_trees import TREES, Table3Tree, VictimDraw, draw_victims, routed
from sar_lab.research.papers.pictures import COLOURS, LABELS, legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import Estimate, median_of

PATTERNS = ("bisect", "gather", "scatter", "bisect_fb_sym", "alltoall")
PLAIN, EXT, NO_QUOTA = "pftree-printed", "pftree-ext-printed", "pftree-ext-no-quota"
FIRST, SHORT = "pftree-printed-first", "pftree-one-short"
READINGS = (FIRST, SHORT)
ENGINES = (PLAIN, *READINGS, EXT, "pftree-ext", "pftree", "ftree")


@dataclass(frozen=True)
class Delays:
    """The delays of one pattern, engine and tree over seeds, each with many runs."""

    least: float
    mean: Estimate
    """The median over seeds of the runs' mean."""
    most: float
    draws: tuple[float, ...]
    """The runs' mean of each seed."""


def delays(
    tree: Table3Tree, engine: str, pattern: str, noise: str, seeds: Sequence[int], runs: int
) -> Delays:
    """dep_max_delay of the victims' `pattern` while the others do `noise`."""
    engine = rule_of(tree, engine)
    least, mean, most = np.array(runs_of(tree, engine, pattern, noise, list(seeds), runs)).T
    return Delays(float(least.min()), median_of(mean), float(most.max()), tuple(mean.tolist()))


def rule_of(tree: Table3Tree, engine: str) -> str:
    """The engine itself, or, where pFTree-Ext's print does not end, the fitted rule."""
    return NO_QUOTA if engine == EXT and tree.oversubscription > 3 else engine


@measured
def runs_of(
    tree: Table3Tree, engine: str, pattern: str, noise: str, seeds: list[int], runs: int
) -> list[list[float]]:
    """Least, mean and most of the runs of each seed. The ranks of the victims are drawn for each
    run; for an all-to-all they do not matter."""
    results = []
    for seed in seeds:
        draw, network = network_of(tree, engine, seed)
        schedule = schedule_of(f"{pattern}::{noise}", tree.nodes, tree.victims)
        once = 1 if pattern == "alltoall" else runs
        values = simulate(
            network, schedule, "dep_max_delay", runs=once, seed=seed, group=draw.victims
        ).values
        results.append([float(values.min()), float(values.mean()), float(values.max())])
    return results


@lru_cache(maxsize=64)
def network_of(tree: Table3Tree, engine: str, seed: int) -> tuple[VictimDraw, Network]:
    """The victims of a seed, and the routed network, whose hosts are the fabric's terminals."""
    draw = draw_victims(tree, seed)
    return draw, network_of_routes(draw.fabric, routed(draw, engine))


SAID_10 = quotes("pftree-fig10")
RUNS_10 = 500
NOISES = ("null", "alltoall")
PRINTED_10 = {
    "bisect": ((1024, SAID_10["noisy"].number, True),),
    "gather": tuple(
        (nodes, number, noisy)
        for nodes in (512, 1024)
        for noisy, number in enumerate(SAID_10[f"gather-{nodes}"].numbers[:2])
    ),
}
"""Pattern → (nodes, delay of pFTree, with noise?)."""
Fig10Key = tuple[str, int, str, str]
"""Pattern, nodes, engine, noise."""
Fig10 = Mapping[Fig10Key, Delays]
SHOWN_10 = (PLAIN, SHORT, EXT)
"""In the picture: `ftree` and our own engines coincide with one of these."""


def pftree_fig10(seeds: Sequence[int]) -> Outcome:
    """Draws of victims on nine trees."""
    results: dict[Fig10Key, Delays] = {}
    for tree in TREES:
        for engine in ENGINES:
            for pattern in PATTERNS:
                for noise in NOISES:
                    key = (pattern, tree.nodes, engine, noise)
                    results[key] = delays(tree, engine, pattern, noise, seeds, RUNS_10)

    halves = {
        t.nodes: _ratio(results, "alltoall", (EXT, "null"), (PLAIN, "null"), t.nodes) for t in TREES
    }
    words = ", ".join(f"{n}: {each.words()}" for n, each in halves.items())
    return Outcome(
        _claims_10(results, PLAIN),
        as_printed={LABELS[engine]: _claims_10(results, engine) for engine in READINGS},
        words={"halves": words},
        tables=[_table_10(results, pattern) for pattern in PATTERNS],
        draw=lambda figure: _draw_10(figure, results),
    )


def _claims_10(results: Fig10, plain: str) -> list[Claim]:
    def means(pattern: str, noise: str, trees: Sequence[Table3Tree] = TREES) -> list[float]:
        return [results[pattern, t.nodes, plain, noise].mean.value for t in trees]

    ext = compared(
        {
            noise: [
                [found.least, found.mean.value, found.most]
                for pattern in PATTERNS
                for found in (results[pattern, t.nodes, EXT, noise] for t in TREES)
            ]
            for noise in ("alltoall", "null")
        },
        PLAINLY,
    )
    most = max(means("bisect", "null"))
    last = TREES[-1:]
    claims = [
        claim(
            ext["alltoall"].equals(ext["null"]),
            "five patterns: pFTree-Ext with noise equals pFTree-Ext without noise at every point",
            said=SAID_10["ext"],
        ),
        claim(Compared([most], PLAINLY) < 10, "bisect without noise: the largest delay below 10",
              ours=f"{most:.1f}", said=SAID_10["quiet"]),
        value("bisect, 1024 nodes, pFTree under noise", SAID_10["noisy"],
              means("bisect", "alltoall", last)[0], NEAR, 1),
    ]  # fmt: skip
    for tree in (t for t in TREES if t.nodes in (512, 1024)):
        quote = SAID_10[f"gather-{tree.nodes}"]
        quiet, under = quote.numbers[:2]
        ours = means("gather", "null", [tree])[0]
        added = means("gather", "alltoall", [tree])[0] - ours
        says = f"gather, {tree.nodes} nodes, pFTree"
        claims += [
            value(f"{says}: without noise", quiet, ours, NEAR, 1, said=quote),
            value(f"{says}: what noise adds", under - quiet, added, NEAR, 1, said=quote),
        ]
    noisy = [means("bisect", "alltoall", TREES[i : i + 3]) for i in (0, 3, 6)]
    at_last = compared(
        {noise: [results["bisect", 1024, plain, noise].draws] for noise in ("alltoall", "null")}
    )
    twice = [a / b for a, b in zip(means("alltoall", "alltoall"), means("alltoall", "null"),
             strict=True)]  # fmt: skip
    half = min(_ratio(results, "alltoall", (EXT, "null"), (plain, "null"), t.nodes).value
               for t in TREES)  # fmt: skip
    return [
        *claims,
        claim(grows(noisy), "bisect, pFTree under noise: the delay grows with oversubscription",
              said=SAID_10["grows"]),
        claim(at_last["alltoall"] > 10 * at_last["null"],
              "bisect, pFTree under noise: the delay at 1,024 nodes over 10 times that without it",
              said=SAID_10["noisy"]),
        value("alltoall, pFTree: with noise, times that without, median of the trees",
              SAID_10["twice"], float(np.median(twice)), NEAR),
        value("alltoall without noise: pFTree-Ext, share of pFTree, least of the trees",
              SAID_10["half"].number / 100, half, NEAR, said=SAID_10["half"]),
    ]  # fmt: skip


def _ratio(
    results: Fig10, pattern: str, slow: tuple[str, str], fast: tuple[str, str], n: int
) -> Estimate:
    """How many times the delay of (engine, noise) `slow` is that of `fast`, draw by draw."""
    return times_as_much(results[pattern, n, *slow].draws, results[pattern, n, *fast].draws)


def _table_10(results: Fig10, pattern: str) -> ResultTable:
    rows = [
        [LABELS[e], noise, *(results[pattern, t.nodes, e, noise].mean.words(1) for t in TREES)]
        for e in ENGINES
        for noise in NOISES
    ]
    return ResultTable([pattern, "noise", *(str(t.nodes) for t in TREES)], rows)


def _draw_10(figure: Figure, results: Fig10) -> None:
    """Arrows from the delay without noise to that with it, for the engines that differ."""
    places = figure.subplots(1, len(PATTERNS), sharey=True)
    for axes, pattern in zip(places, PATTERNS, strict=True):
        for place, engine in enumerate(SHOWN_10):
            quiet, noisy = (
                np.array([results[pattern, t.nodes, engine, noise].mean.value for t in TREES])
                for noise in NOISES
            )
            where = np.arange(len(TREES)) + 0.25 * (place - 1)
            axes.vlines(where, quiet, noisy, color=COLOURS[engine], lw=1.5)
            axes.plot(where, quiet, "o", ms=3, mfc="white", color=COLOURS[engine])
            axes.plot(where, noisy, "o", ms=3, color=COLOURS[engine], label=LABELS[engine])
        for nodes, number, noisy_ in PRINTED_10.get(pattern, ()):
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


SAID_4 = quotes("pftree-table4")
RUNS_4 = 2000
PATTERNS_4 = ("bisect", "bisect_fb_sym", "gather", "alltoall")
"""Without scatter: its published minimum cannot come from the public simulator (ERRATA)."""
PRINTED_4 = {
    (pattern, nodes): (tuple(quote.numbers[:3]), tuple(quote.numbers[3:]))
    for name, quote in SAID_4.items()
    for pattern, nodes in ((name.rpartition("-")[0], int(name.rpartition("-")[2])),)
}
"""(pattern, nodes): least, mean and most of pFTree and of pFTree-Ext."""
SHOWN_4 = (PLAIN, SHORT, EXT, "ftree")
"""In the picture; the others have the bars of one of these."""
SOME = [tree for tree in TREES if tree.nodes in (128, 192, 256)]


def pftree_table4(seeds: Sequence[int]) -> Outcome:
    """25 draws of victims, 2,000 runs each: 50,000, as in the paper."""
    results = {
        (pattern, tree.nodes, engine): delays(tree, engine, pattern, "alltoall", seeds, RUNS_4)
        for tree in SOME
        for engine in ENGINES
        for pattern in PATTERNS_4
    }
    rows = []
    for (pattern, nodes), printed in PRINTED_4.items():
        cells = [_cell_4(results[pattern, nodes, engine]) for engine in ENGINES]
        words = [" / ".join(f"{number:g}" for number in numbers) for numbers in printed]
        rows.append([pattern, str(nodes), *words, *cells])
    return Outcome(
        _claims_4(results, PLAIN),
        as_printed={LABELS[engine]: _claims_4(results, engine) for engine in READINGS},
        tables=[
            ResultTable(
                [
                    "pattern",
                    "nodes",
                    "printed pFTree",
                    "printed Ext",
                    *(LABELS[e] for e in ENGINES),
                ],
                rows,
            )
        ],
        draw=lambda figure: _draw_4(figure, results),
    )


Table4 = Mapping[tuple[str, int, str], Delays]


def _claims_4(results: Table4, plain: str) -> list[Claim]:
    claims: list[Claim] = []
    for (pattern, nodes), printed in PRINTED_4.items():
        quote = SAID_4[f"{pattern}-{nodes}"]
        found = {engine: results[pattern, nodes, engine] for engine in (plain, EXT)}
        for (engine, one), numbers in zip(found.items(), printed, strict=True):
            near = EXACT if pattern == "gather" and engine == EXT else NEAR
            name = "pFTree" if engine == plain else "pFTree-Ext"
            each = zip(("least", "mean", "most"), numbers,
                       (one.least, one.mean.value, one.most), strict=True)  # fmt: skip
            claims += [
                value(f"{pattern}, {nodes} nodes, {name}: {what} delay", number, ours, near, 1,
                      said=quote)
                for what, number, ours in each
            ]  # fmt: skip
        means = compared({engine: [each.mean] for engine, each in found.items()}, MEDIANS)
        says = f"{pattern}, {nodes} nodes: pFTree above pFTree-Ext"
        claims.append(claim(means[plain] > means[EXT], says, said=quote))
    return claims


def _cell_4(delay: Delays) -> str:
    return f"{delay.least:g} / {delay.mean.words(1)} / {delay.most:g}"


def _draw_4(figure: Figure, results: Table4) -> None:
    for axes, tree in zip(figure.subplots(1, 3, sharey=True), SOME, strict=True):
        at = np.arange(len(PATTERNS_4))
        for place, engine in enumerate(SHOWN_4):
            each = [results[p, tree.nodes, engine] for p in PATTERNS_4]
            means = np.array([delay.mean.value for delay in each])
            where = at + 0.2 * (place - 1.5)
            axes.bar(where, means, 0.19, color=COLOURS[engine], label=LABELS[engine])
            # Where the least is 0, a logarithmic axis has no place for it.
            least = np.array([max(delay.least, 0.5) for delay in each])
            bars = [means - least, [delay.most - delay.mean.value for delay in each]]
            axes.errorbar(where, means, bars, fmt="none", ecolor="black", capsize=1.5, lw=0.7)
        for side in (0, 1):
            printed = [PRINTED_4[p, tree.nodes][side][1] for p in PATTERNS_4]
            marker = "v^"[side]
            axes.plot(
                at + 0.2 * ((-1.5, 0.5)[side]),
                printed,
                f"k{marker}",
                label=f"published, {'pFTree-Ext' if side else 'pFTree'}",
            )
        axes.set_xticks(at, [p.replace("bisect_", "bisect\n") for p in PATTERNS_4], fontsize=7)
        axes.set(title=f"{tree.nodes} nodes, {tree.oversubscription}:1", yscale="log")
    draws = results[PATTERNS_4[0], SOME[0].nodes, ENGINES[0]].mean.n
    figure.axes[0].set_ylabel(f"mean delay, n = {draws} draws\n(bars: least and most)")
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=3, fontsize=8)
