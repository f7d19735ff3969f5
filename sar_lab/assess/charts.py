"""Parts of SVG charts, and paired histograms. Colours come from the page's CSS.

Every chart is 420 units wide with 13-unit text, so that it is legible on a phone. "Before" is
hollow or dashed and "after" is solid, so that the chart is readable without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH = 420


def svg(height: float, label: str, parts: Sequence[str]) -> str:
    """The SVG element of a chart; screen readers read `label`."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    """One line of text as an SVG element."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{escape(words)}</text>'


def ticks(top: float, most: int = 4) -> list[float]:
    """0, step, 2 step, … up to `top`, the step being 1, 2 or 5 times a power of ten."""
    if top <= 0:
        return [0.0]
    power = 10.0 ** np.floor(np.log10(top / most))
    step = next(power * m for m in (1, 2, 5, 10) if top / (power * m) <= most)
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def histograms(
    label: str,
    panels: Sequence[tuple[str, NDArray[np.int64], str]],
    bound: int,
    bins: int = 24,
) -> str:
    """Histograms below each other with the same axes; zero has a bar of its own at the far left.

    The dotted line is the lower bound of the maximum.
    """
    top = max(1, *(int(values.max(initial=0)) for _, values, _ in panels))
    step = max(1, -(-top // bins))
    columns = -(-top // step)
    counts = [
        np.concatenate([[(v == 0).sum()], np.bincount((v[v > 0] - 1) // step, minlength=columns)])
        for _, v, _ in panels
    ]
    most = max(1, *(int(c.max()) for c in counts))
    left, width, tall = 44.0, (WIDTH - 44 - 34 - 6) / columns, 120.0
    start = left + 34
    parts = []
    for i, ((name, _, style), count) in enumerate(zip(panels, counts, strict=True)):
        base = 30 + (tall + 52) * i + tall
        parts.append(text(WIDTH - 4, base - tall - 10, name, "end", "strong"))
        for tick in ticks(most, 3):
            y = base - tick / most * tall
            parts.append(f'<path class="grid" d="M{left} {y:.1f}H{WIDTH - 6}"/>')
            parts.append(text(left - 5, y + 4, f"{tick:.0f}", "end", "small"))
        for k, number in enumerate(count.tolist()):
            x, w = (left + 4, 22.0) if k == 0 else (start + (k - 1) * width, width - 1)
            h = number / most * tall
            kind = "darkbar" if k == 0 else style
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{base - h:.1f}" width="{w:.1f}" '
                f'height="{h:.1f}"/>'
            )
        at = start + bound / step * width
        parts.append(f'<path class="bound" d="M{at:.1f} {base - tall + 8:.1f}V{base:.1f}"/>')
        parts.append(text(left + 15, base + 15, "dark", "middle", "small"))
        for tick in ticks(top, 5)[1:]:
            x = start + (tick - 0.5) / step * width
            parts.append(text(x, base + 15, f"{tick:.0f}", "middle", "small"))
    return svg(8 + (tall + 52) * len(panels), label, parts)
