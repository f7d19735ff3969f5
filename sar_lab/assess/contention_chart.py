"""One picture of all collectives: a row for each, a dot for each job at its contention.

A row has two lanes. "Before" is the upper one, with hollow dots, and "after" the lower one, with
solid dots. Jobs of about the same contention are stacked; a stack that is too high for its lane is
squeezed, so that a few hundred jobs still show where most of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sar_lab.assess.charts import WIDTH, svg, text, ticks

LEFT, RIGHT = 12.0, WIDTH - 14.0
LANE, HEAD, GAP = 24.0, 20.0, 10.0
DOT = 3.2


class ContentionRow(NamedTuple):
    """One collective: what it is called, and the contention of each job, 1 or more."""

    title: str
    before: Sequence[float]
    after: Sequence[float]
    """Empty where no routes are proposed."""
    means: Sequence[float]
    """Before, and after: means over jobs."""


def contention_chart(rows: Sequence[ContentionRow]) -> str:
    """The SVG element. All rows have one axis, from 1 to the largest contention."""
    top = max(1.5, *(max([*row.before, *row.after], default=1.0) for row in rows)) if rows else 1.5
    scale = (RIGHT - LEFT - 2 * DOT) / (top - 1.0)
    parts: list[str] = []
    y = 0.0
    for row in rows:
        parts.append(text(LEFT, y + 14, row.title, style="strong"))
        means = " → ".join(f"{mean:.2f}" for mean in row.means)
        parts.append(text(RIGHT, y + 14, f"mean over jobs {means}", "end"))
        y += HEAD
        for values, style in ((row.before, "hollow"), (row.after, "after")):
            if not len(values):
                continue
            base = y + LANE
            parts.append(f'<path class="grid" d="M{LEFT} {base:.1f}H{RIGHT}"/>')
            parts += _dots(values, style, base, scale)
            y = base + 4
        y += GAP
    for tick in ticks(top - 1.0, 4):
        parts.append(text(LEFT + DOT + tick * scale, y + 8, f"{1 + tick:.2g}×", "middle", "small"))
    return svg(y + 14, "Contention of each job in each collective, before and after", parts)


def _dots(values: Sequence[float], style: str, base: float, scale: float) -> list[str]:
    place = np.round((np.asarray(values) - 1.0) * scale / (2 * DOT)).astype(np.int64)
    parts = []
    for column, count in zip(*np.unique(place, return_counts=True), strict=True):
        step = min(2 * DOT, (LANE - 2 * DOT) / max(1, count - 1))
        x = LEFT + DOT + float(column) * 2 * DOT
        parts += [
            f'<circle class="{style}" cx="{x:.1f}" cy="{base - DOT - k * step:.1f}" r="2.8"/>'
            for k in range(int(count))
        ]
    return parts
