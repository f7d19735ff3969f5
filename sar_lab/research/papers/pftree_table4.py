"""pFTree, Table 4: delays of five patterns while the rest of the machine does an all-to-all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sar_lab.research.papers.claims import EXACT, NEAR, Claim, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_delays import (
    ENGINES,
    EXT,
    PLAIN,
    READINGS,
    SHORT,
    Delays,
    delays,
)
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.worded_claims import MEDIANS, Draws, judged

SAID = quotes("pftree-table4")
RUNS = 2000
PATTERNS = ("bisect", "bisect_fb_sym", "gather", "alltoall")
"""Without scatter: its published minimum cannot come from the public simulator (ERRATA)."""
PRINTED = {
    (pattern, nodes): (tuple(quote.numbers[:3]), tuple(quote.numbers[3:]))
    for name, quote in SAID.items()
    for pattern, nodes in ((name.rpartition("-")[0], int(name.rpartition("-")[2])),)
}
"""(pattern, nodes): least, mean and most of pFTree and of pFTree-Ext."""
SHOWN = (PLAIN, SHORT, EXT, "ftree")
"""In the picture; the others have the bars of one of these."""
SOME = [tree for tree in TREES if tree.nodes in (128, 192, 256)]


def pftree_table4(seeds: Sequence[int]) -> Outcome:
    """25 draws of victims, 2,000 runs each: 50,000, as in the paper."""
    results = {
        (pattern, tree.nodes, engine): delays(tree, engine, pattern, "alltoall", seeds, RUNS)
        for tree in SOME
        for engine in ENGINES
        for pattern in PATTERNS
    }
    rows = []
    for (pattern, nodes), printed in PRINTED.items():
        cells = [_cell(results[pattern, nodes, engine]) for engine in ENGINES]
        words = [" / ".join(f"{number:g}" for number in numbers) for numbers in printed]
        rows.append([pattern, str(nodes), *words, *cells])
    return Outcome(
        _claims(results, PLAIN),
        as_printed={LABELS[engine]: _claims(results, engine) for engine in READINGS},
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
        draw=lambda figure: _draw(figure, results),
    )


Results = Mapping[tuple[str, int, str], Delays]


def _claims(results: Results, plain: str) -> list[Claim]:
    claims: list[Claim] = []
    for (pattern, nodes), printed in PRINTED.items():
        quote = SAID[f"{pattern}-{nodes}"]
        found = {engine: results[pattern, nodes, engine] for engine in (plain, EXT)}
        for (engine, one), numbers in zip(found.items(), printed, strict=True):
            near = EXACT if pattern == "gather" and engine == EXT else NEAR
            name = "pFTree" if engine == plain else LABELS[EXT]
            each = zip(("least", "mean", "most"), numbers,
                       (one.least, one.mean.value, one.most), strict=True)  # fmt: skip
            claims += [
                value(f"{pattern}, {nodes} nodes, {name}: {what} delay", number, ours, near, 1,
                      said=quote)
                for what, number, ours in each
            ]  # fmt: skip
        means: dict[str, list[Draws]] = {
            "pFTree": [found[plain].mean], "pFTree-Ext": [found[EXT].mean],
        }  # fmt: skip
        claims.append(
            judged(f"{pattern}, {nodes} nodes: pFTree above pFTree-Ext", means, MEDIANS, said=quote)
        )
    return claims


def _cell(delay: Delays) -> str:
    return f"{delay.least:g} / {delay.mean.words(1)} / {delay.most:g}"


def _draw(figure: Figure, results: Results) -> None:
    for axes, tree in zip(figure.subplots(1, 3, sharey=True), SOME, strict=True):
        at = np.arange(len(PATTERNS))
        for place, engine in enumerate(SHOWN):
            each = [results[p, tree.nodes, engine] for p in PATTERNS]
            means = np.array([delay.mean.value for delay in each])
            where = at + 0.2 * (place - 1.5)
            axes.bar(where, means, 0.19, color=COLOURS[engine], label=LABELS[engine])
            # Where the least is 0, a logarithmic axis has no place for it.
            least = np.array([max(delay.least, 0.5) for delay in each])
            bars = [means - least, [delay.most - delay.mean.value for delay in each]]
            axes.errorbar(where, means, bars, fmt="none", ecolor="black", capsize=1.5, lw=0.7)
        for side in (0, 1):
            printed = [PRINTED[p, tree.nodes][side][1] for p in PATTERNS]
            marker = "v^"[side]
            axes.plot(
                at + 0.2 * ((-1.5, 0.5)[side]),
                printed,
                f"k{marker}",
                label=f"published, {'pFTree-Ext' if side else 'pFTree'}",
            )
        axes.set_xticks(at, [p.replace("bisect_", "bisect\n") for p in PATTERNS], fontsize=7)
        axes.set(title=f"{tree.nodes} nodes, {tree.oversubscription}:1", yscale="log")
    draws = results[PATTERNS[0], SOME[0].nodes, ENGINES[0]].mean.n
    figure.axes[0].set_ylabel(f"mean delay, n = {draws} draws\n(bars: least and most)")
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=3, fontsize=8)
