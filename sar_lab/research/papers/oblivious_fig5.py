"""Oblivious-XGFT, Fig. 5: does scrambling the labels save D-mod-k from patterns like its own?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from sar_lab.research.papers.claims import value
from sar_lab.research.papers.oblivious_fig2 import by_label, slowdown_table
from sar_lab.research.papers.outcome import Axes, Figure, Outcome
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.slimmed_trees import DRAWN, ROOTS, Slowdowns, slowdowns
from sar_lab.research.papers.worded_claims import judged

if TYPE_CHECKING:
    from matplotlib.artist import Artist

SAID = quotes("oblivious-fig5")
ENGINES = ("dmodk", "random", "rnca-u", "rnca-d", "colored")
LINES: tuple[tuple[str, Literal["--", ":"]], ...] = (("dmodk", "--"), ("colored", ":"))


def oblivious_fig5(seeds: Sequence[int]) -> Outcome:
    """The slowdowns over seeds."""
    wrf = slowdowns("WRF-256", ENGINES, seeds)
    cg = slowdowns("CG.D-128", ENGINES, seeds)
    phase = slowdowns("CG.D-128, phase 5", ENGINES, seeds)
    claims = []
    for title, by_engine, quote in (("WRF-256", wrf, "wrf"), ("CG.D-128", cg, "cg")):
        numbers, says = by_label(by_engine), f"{title}: r-NCA-u better than Random at all but 1 w2"
        apart = {r: np.subtract(by_engine["rnca-u"][r], by_engine["rnca-d"][r]) for r in ROOTS}
        same = float(max(abs(each).max() for each in apart.values()))
        claims += [
            judged(says, numbers, said=SAID[quote]),
            value(f"{title}: r-NCA-d less r-NCA-u", 0, same, said=SAID["symmetric"]),
        ]
    claims += [
        judged("WRF-256: r-NCA-u within 20 % of D-mod-k at most w2", by_label(wrf),
               said=SAID["wrf-near"]),
        judged("CG.D-128, w2 = 16, phase 5: r-NCA-u better than D-mod-k", by_label(phase, 16),
               ours=", ".join(f"{np.mean(phase[n][16]):.2f}" for n in ("rnca-u", "dmodk")),
               said=SAID["pathological"]),
    ]  # fmt: skip
    return Outcome(
        claims,
        tables=[
            slowdown_table({LABELS[name]: each for name, each in by_engine.items()}, title)
            for by_engine, title in ((wrf, "WRF-256"), (cg, "CG.D-128"))
        ],
        draw=lambda figure: _draw(figure, wrf, cg),
    )


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
