"""The style of the papers' pictures: small, one palette, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_lab.research.papers.outcome import Axes, Figure
from sar_lab.research.statistics import Estimate

Place = Literal["outside upper center", "outside lower center"]
LABELS = {
    "smodk": "S-mod-k", "dmodk": "D-mod-k", "random": "Random", "colored": "pattern-aware",
    "rnca-u": "r-NCA-u", "rnca-d": "r-NCA-d", "pftree": "pFTree", "pftree-ext": "pFTree-Ext",
    "pftree-printed": "pFTree as printed",
    "pftree-printed-first": "pFTree as printed, first marked",
    "pftree-one-short": "pFTree, one way short (hypothesis)",
    "pftree-ext-printed": "pFTree-Ext as printed", "pftree-wt-printed": "pFTree-Wt as printed",
    "pftree-wt": "pFTree-Wt",
    "ftree": "ftree (sees no partitions)",
    "ark": "ARK", "nrk": "NRK", "conga": "Conga-like", "ark-printed": "ARK as printed",
    "ark-printed-drawn": "ARK as printed, start drawn",
    "nrk-printed": "NRK as printed, fewest flows", "nrk-printed-links": "NRK as printed, own links",
    "opensm-dfsssp": "DFSSSP", "opensm-ftree": "fat-tree", "opensm-updn": "Up*/Down*",
    "sar": "SAR", "sar-plus": "sar-plus (ours)",
}  # fmt: skip
"""The names of engines as in the papers."""
COLOURS = {
    "smodk": "#4477aa", "dmodk": "#228833", "random": "#ee6677", "colored": "#000000",
    "rnca-u": "#ccbb44", "rnca-d": "#aa3377", "pftree": "#ccbb44", "pftree-ext": "#4477aa",
    "pftree-printed": "#ee6677", "pftree-printed-first": "#ee6677",
    "pftree-one-short": "#000000", "pftree-ext-printed": "#aa3377",
    "pftree-wt": "#4477aa", "pftree-wt-printed": "#228833",
    "ftree": "#999999", "ark": "#ccbb44", "nrk": "#4477aa", "conga": "#ee6677",
    "ark-printed": "#999999", "ark-printed-drawn": "#228833",
    "nrk-printed": "#aa3377", "nrk-printed-links": "#000000",
    "opensm-dfsssp": "#ee6677", "opensm-ftree": "#228833", "opensm-updn": "#ccbb44",
    "sar": "#4477aa", "sar-plus": "#66ccee",
}  # fmt: skip
"""Paul Tol's bright palette, which colour-blind readers can distinguish."""


def spans(found: Iterable[Estimate]) -> NDArray[np.float64]:
    """float64[2, N]: how far intervals reach below and above their values, for error bars."""
    return np.array([(e.value - e.low, e.high - e.value) for e in found]).T


def band(
    axes: Axes,
    x: Sequence[float],
    found: Sequence[Estimate],
    *args: Any,
    color: str,
    alpha: float = 0.2,
    **style: Any,
) -> None:
    """A line, with its intervals as a band."""
    axes.plot(x, [e.value for e in found], *args, color=color, **style)
    low, high = [e.low for e in found], [e.high for e in found]
    axes.fill_between(x, low, high, color=color, alpha=alpha, lw=0)


def bars(axes: Axes, x: ArrayLike, found: Sequence[Estimate], width: float, **style: Any) -> None:
    """Bars with their intervals."""
    height = [e.value for e in found]
    axes.bar(np.asarray(x), height, width, yerr=spans(found), error_kw={"lw": 0.8}, **style)


def grouped_bars(
    axes: Axes,
    groups: Sequence[str],
    rows: Mapping[str, Sequence[Estimate] | Sequence[float]],
    colours: Iterable[str],
    **ticks: Any,
) -> None:
    """A bar of each row at each group, with its interval where it has one."""
    at, step = np.arange(len(groups)), 0.8 / len(rows)
    for i, ((row, found), colour) in enumerate(zip(rows.items(), colours, strict=True)):
        some = [each for each in found if isinstance(each, Estimate)]
        place = at + step * (i - (len(rows) - 1) / 2)
        if some:
            bars(axes, place, some, 0.95 * step, label=row, color=colour)
        else:
            axes.bar(place, np.asarray(found, float), 0.95 * step, label=row, color=colour)
    axes.set_xticks(at, groups, **ticks)


def legend(figure: Figure, loc: Place = "outside upper center", **style: Any) -> None:
    """One legend of all panels above or below them; what several name is in it once."""
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    names = {name: line for lines, some in found for line, name in zip(lines, some, strict=True)}
    figure.legend(names.values(), names.keys(), loc=loc, **style)


def save(draw: Callable[[Figure], None], path: Path, size: tuple[float, float]) -> bool:
    """Writes an SVG without a window system; returns False without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return False
    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "path.simplify": True}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
            if not axes.images:
                axes.grid(alpha=0.25)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    return True
