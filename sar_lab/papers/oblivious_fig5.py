"""Oblivious-XGFT, Fig. 5: does scrambling the labels save D-mod-k from patterns like its own?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sar_lab.papers.claims import NEAR, order
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.pictures import COLOURS, LABELS
from sar_lab.papers.registry import ExperimentResult
from sar_lab.papers.slimmed_trees import DRAWN, ROOTS, Slowdowns, slowdowns
from sar_lab.statistics import bootstrap_of, median_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "oblivious-fig5"
WHERE = "oblivious-xgft-2009, Fig. 5"
CLASS = "S"
PUBLISHED = (
    "r-NCA-u and r-NCA-d are statistically better than Random on both programs, near S/D-mod-k on "
    "WRF-256, and avoid the worst cases of S/D-mod-k on CG.D-128"
)
SEEDS = 60
ENGINES = ("dmodk", "random", "rnca-u", "rnca-d", "colored")
NEW = ("rnca-u", "rnca-d")
LINES: tuple[tuple[str, Literal["--", ":"]], ...] = (("dmodk", "--"), ("colored", ":"))


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """The slowdowns over seeds."""
    wrf = slowdowns("WRF-256", ENGINES, seeds)
    cg = slowdowns("CG.D-128", ENGINES, seeds)
    phase = slowdowns("CG.D-128, phase 5", ENGINES, seeds)
    claims = []
    for title, by_engine in (("WRF-256", wrf), ("CG.D-128", cg)):
        for name in NEW:
            verdicts = [_compare(by_engine, name, "random", roots) for roots in ROOTS]
            better, worse = verdicts.count(-1), verdicts.count(1)
            claims.append(
                order(
                    f"{title}: {LABELS[name]} better than Random for most w2, worse for none",
                    better > len(ROOTS) // 2 and not worse,
                    f"better at {better} of {len(ROOTS)} w2, worse at {worse}, else no significant "
                    "difference",
                )
            )
    for name in NEW:
        near = [median_of(wrf[name][r]).value <= (1 + NEAR) * wrf["dmodk"][r][0] for r in ROOTS]
        claims.append(
            order(
                f"WRF-256: {LABELS[name]} within {NEAR:.0%} of D-mod-k for the majority of trees",
                sum(near) > len(ROOTS) // 2,
                f"at {sum(near)} of {len(ROOTS)} w2",
            )
        )
        ours = median_of(phase[name][16]).value
        claims.append(
            order(
                f"CG.D-128, w2 = 16, phase 5: {LABELS[name]} better than Random and D-mod-k",
                _compare(phase, name, "random", 16) < 0 and ours < phase["dmodk"][16][0],
                ", ".join(f"{np.mean(phase[n][16]):.2f}" for n in (name, "random", "dmodk")),
            )
        )
    return outcome(
        out / f"{NAME}.png",
        claims,
        "As Fig. 2. Boxes: the middle half of the seeds; whiskers: least and most, as in the "
        "paper. Better means that 95 % bootstrap intervals of the means do not overlap; medians "
        "on CG.D-128 mostly tie.",
        tables=[_table(wrf, "WRF-256"), _table(cg, "CG.D-128")],
        draw=lambda figure: _draw(figure, wrf, cg),
        size=(8.0, 6.5),
    )


def _compare(by_engine: Slowdowns, name: str, other: str, roots: int) -> int:
    """-1 where `name` is significantly better, 1 where it is significantly worse, else 0."""
    a, b = (bootstrap_of(by_engine[each][roots], np.mean, resamples=2000) for each in (name, other))
    if not a.apart_from(b):
        return 0
    return -1 if a.value < b.value else 1


def _table(by_engine: Slowdowns, title: str) -> ResultTable:
    shown = [r for r in ROOTS if r in (16, 12, 10, 8, 4, 2, 1)]
    rows = [
        [LABELS[name], *(median_of(by_engine[name][r]).words() for r in shown)] for name in ENGINES
    ]
    return ResultTable([f"{title}, w2 =", *map(str, shown)], rows)


def _draw(figure: Figure, wrf: Slowdowns, cg: Slowdowns) -> None:
    for axes, by_engine, title in zip(
        figure.subplots(2, 1), (wrf, cg), ("WRF-256", "CG.D-128"), strict=True
    ):
        _boxes(axes, by_engine)
        axes.set(title=title, ylabel="slowdown", ylim=0)
        axes.set_xticks(range(len(ROOTS)), map(str, ROOTS))
    figure.axes[1].set_xlabel("roots (w2)")


def _boxes(axes: Axes, by_engine: Slowdowns) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = [name for name in ENGINES if name in DRAWN]
    for place, name in enumerate(drawn):
        at = [i + 0.26 * (place - 1) for i in range(len(ROOTS))]
        boxes = axes.boxplot(
            [by_engine[name][r] for r in ROOTS], positions=at, widths=0.2, whis=(0, 100),
            patch_artist=True, manage_ticks=False,
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set_facecolor(COLOURS[name])
        for line in boxes["medians"]:
            line.set(color="black", linewidth=2)
    for name, style in LINES:
        axes.plot([by_engine[name][r][0] for r in ROOTS], style, color=COLOURS[name])
    handles: list[Artist] = [Patch(color=COLOURS[name], label=LABELS[name]) for name in drawn]
    for name, style in LINES:
        handles.append(Line2D([], [], linestyle=style, color=COLOURS[name], label=LABELS[name]))
    axes.legend(handles=handles)
