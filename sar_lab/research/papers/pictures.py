"""The style of the papers' pictures: small, one palette, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110
LABELS = {
    "smodk": "S-mod-k", "dmodk": "D-mod-k", "random": "Random", "colored": "pattern-aware",
    "rnca-u": "r-NCA-u", "rnca-d": "r-NCA-d", "pftree": "pFTree", "pftree-ext": "pFTree-Ext",
    "pftree-printed": "pFTree as printed", "pftree-ext-no-quota": "pFTree-Ext, no quota",
    "pftree-wt": "pFTree-Wt",
    "ftree": "ftree (sees no partitions)",
    "ark": "ARK", "nrk": "NRK", "conga": "Conga-like",
}  # fmt: skip
"""The names of engines as in the papers."""
COLOURS = {
    "smodk": "#4477aa", "dmodk": "#228833", "random": "#ee6677", "colored": "#000000",
    "rnca-u": "#ccbb44", "rnca-d": "#aa3377", "pftree": "#ccbb44", "pftree-ext": "#4477aa",
    "pftree-printed": "#ee6677", "pftree-ext-no-quota": "#aa3377",
    "pftree-wt": "#4477aa",
    "ftree": "#999999", "ark": "#ccbb44", "nrk": "#4477aa", "conga": "#ee6677",
}  # fmt: skip
"""Paul Tol's bright palette, which colour-blind readers can distinguish."""


def save(draw: Callable[[Figure], None], path: Path, size: tuple[float, float]) -> bool:
    """Writes a PNG without a window system; returns False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        if not axes.images:
            axes.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": ""})
    return True
