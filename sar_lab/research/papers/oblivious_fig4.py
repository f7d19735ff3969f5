"""Oblivious-XGFT, Fig. 4: the number of routes over each root, for all pairs of hosts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sar_lab.fluid.path_routes import PathRoutes
from sar_lab.research.papers.claims import value
from sar_lab.research.papers.compared import MEDIANS, PLAIN, Compared, claim, compared
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.oblivious_slowdowns import DRAWN
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.xgft_slowdown import choice_of, slimmed
from sar_lab.research.statistics import median_of

SAID = quotes("oblivious-fig4")
PRINTED = 3840
"""Routes of a root of S-mod-k and D-mod-k with 16 roots, and of the emptier ones of 10."""
ENGINES = ("smodk", "dmodk", "random", "rnca-u", "rnca-d")
Counts = NDArray[np.int64]


def routes_per_root(name: str, roots: int, seed: int = 0) -> Counts:
    """int64[roots]: pairs of hosts under two leaf switches, by the root that joins them."""
    fabric, view = slimmed(roots)
    hosts = np.arange(fabric.terminals, dtype=np.int32)
    source, destination = (each.ravel() for each in np.meshgrid(hosts, hosts))
    leaf = fabric.terminal_switch
    far = leaf[source] != leaf[destination]
    paths = PathRoutes(name, fabric, view, choice_of(name, fabric, view, seed))
    return np.bincount(paths.nca(source[far], destination[far]), minlength=roots)


@measured
def counts_of(name: str, roots: int, seeds: list[int]) -> list[list[int]]:
    """`routes_per_root` of each seed."""
    return [routes_per_root(name, roots, seed).tolist() for seed in seeds]


def oblivious_fig4(seeds: Sequence[int]) -> Outcome:
    """The counts for both trees."""
    counts = {
        (name, roots): list(
            np.array(counts_of(name, roots, list(seeds if name in DRAWN else (0,))))
        )
        for name in ENGINES
        for roots in (16, 10)
    }
    spread = {
        key: median_of([float(each.max() - each.min()) for each in draws])
        for key, draws in counts.items()
    }
    mean = 16 * 16 * 240 / 10
    claims = []
    for name in ("smodk", "dmodk"):
        even, uneven = counts[name, 16][0], counts[name, 10][0]
        least, most = float(even.min()), float(even.max())
        claims += [
            value(f"{LABELS[name]}, 16 roots: most of a root, as least", least, most,
                  said=SAID["even"]),
            value(f"{LABELS[name]}, 16 roots: routes of a root", SAID["counts"], least),
            value(f"{LABELS[name]}, 10 roots: roots with twice as many as the others",
                  SAID["uneven"], float((uneven == 2 * uneven.min()).sum())),
            value(f"{LABELS[name]}, 10 roots: least of a root", SAID["counts"],
                  float(uneven.min())),
        ]  # fmt: skip
    extremes = [float(n) for each in counts["random", 10] for n in (each.min(), each.max())]
    claims.append(
        claim(
            Compared(extremes, PLAIN).within(0.05, mean),
            "Random, 10 roots: a root's routes within 5 % of the mean at every root",
            ours=f"within {max(abs(n / mean - 1) for n in extremes):.1%}",
            said=SAID["random"],
        )
    )
    uneven = compared({n: [spread[n, 10]] for n in ENGINES}, MEDIANS)
    for name in ("rnca-u", "rnca-d"):
        says = f"10 roots, most less least: {LABELS[name]} less than D-mod-k"
        claims.append(claim(uneven[name] < uneven["dmodk"], says, said=SAID["relabelled"]))
    rows = [
        [
            LABELS[name],
            str(roots),
            f"{median_of([float(each.min()) for each in draws]).words(0)}",
            f"{median_of([float(each.max()) for each in draws]).words(0)}",
        ]
        for (name, roots), draws in counts.items()
    ]
    return Outcome(
        claims,
        tables=[ResultTable(["engine", "roots", "least routes of a root", "most"], rows)],
        draw=lambda figure: _draw(figure, counts),
    )


def _draw(figure: Figure, counts: dict[tuple[str, int], list[Counts]]) -> None:
    """Root by root, as in the paper: the mean over seeds, least and most as bars."""
    places = figure.subplots(2, len(ENGINES), sharey=True, sharex="row")
    for row, roots in zip(places, (16, 10), strict=True):
        for axes, name in zip(row, ENGINES, strict=True):
            draws = np.sort(np.array(counts[name, roots]), axis=1)[:, ::-1]
            mean = draws.mean(axis=0)
            spread = [mean - draws.min(axis=0), draws.max(axis=0) - mean]
            at = np.arange(roots)
            axes.bar(at, mean, 0.8, color=COLOURS[name], label="ours")
            if len(draws) > 1:
                axes.errorbar(at, mean, spread, fmt="none", ecolor="black", lw=0.8, capsize=1.5)
            if name in ("smodk", "dmodk"):
                printed = [PRINTED] * 16 if roots == 16 else [2 * PRINTED] * 6 + [PRINTED] * 4
                axes.plot(at, printed, "kD", ms=3.5, mfc="none", label="published")
            axes.set(title=f"{LABELS[name]}, {roots} roots,\nn = {len(draws)}", ylim=(0, 8200))
            axes.title.set_fontsize("small")
            axes.set_xticks([0, roots // 2, roots - 1], ["1", str(roots // 2 + 1), str(roots)])
        row[0].set_ylabel("routes of a root")
    figure.supxlabel(
        "roots of a draw, the fullest first; bars: least and most of n draws", fontsize="small"
    )
    figure.legend(*places[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
