"""Link loads as colours: the load classes of all pictures of the report, and the heat map.

In the map a block is one level of the network in one direction, a column is a switch, and a cell is
one of its links, the fullest on top. A blank cell is a link that no job uses. All cells of a colour
are one SVG path of dashes, so that 20,000 links take 200 kB.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.link_levels import channel_levels
from sar_agent.util.plural import plural
from sar_lab.assess.charts import text

WIDTH = 840
Loads = NDArray[np.float64]
CLASS_BOUNDS = (0.5, 1.0, 1.5, 2.0, 3.0)
"""Upper bounds of the load classes 1 … 5. Class 0 is an unused link, class 6 is above all
bounds."""
CLASS_NAMES = ("unused", "up to ½ full", "½ to full", "to 1½ times full", "to 2 times",
               "to 3 times", "more than 3 times")  # fmt: skip
ROUNDING = 1e-6
"""Loads that differ by less are equal."""


def load_classes(load: Loads) -> NDArray[np.int64]:
    """int64[C]: the load class of each channel, 0 … 6."""
    result = 1 + np.searchsorted(np.array(CLASS_BOUNDS) + ROUNDING, load)
    return np.where(load > 0, result, 0).astype(np.int64)


def heat_map(fabric: Fabric, load: Loads) -> tuple[str, float]:
    """(the inside of an `<svg viewBox="0 0 840 height">`, height)."""
    kind = load_classes(load)
    parts, y = [], 0.0
    for level in channel_levels(fabric):
        source = fabric.channel_source[level.channels]
        order = np.lexsort((-load[level.channels], source))
        channels, source = level.channels[order], source[order]
        columns, first, size = np.unique(source, return_index=True, return_counts=True)
        rows = int(size.max())
        wide, tall = WIDTH / len(columns), float(np.clip(200 / rows, 3, 14))
        parts.append(text(0, y + 20, level.name, style="heading"))
        y += 30
        column = np.repeat(np.arange(len(columns)), size)
        row = np.arange(len(channels)) - np.repeat(first, size)
        parts.append(
            f'<rect class="frame" x="0" y="{y:.1f}" width="{WIDTH}" height="{rows * tall:.1f}"/>'
        )
        lines: dict[int, list[str]] = defaultdict(list)
        gap = 0.0 if wide < 3 else 0.6
        for c, i, k in zip(channels.tolist(), column.tolist(), row.tolist(), strict=True):
            if kind[c]:
                at = f"M{i * wide:.1f} {y + (k + 0.5) * tall:.1f}h{wide - gap:.1f}"
                lines[int(kind[c])].append(at)
        parts += [
            f'<path class="h{k}" stroke-width="{tall - gap:.1f}" d="{"".join(lines[k])}"/>'
            for k in sorted(lines)
        ]
        y += rows * tall + 14
    return "\n".join(parts), y


def level_bars(fabric: Fabric, before: Loads, after: Loads) -> tuple[str, float]:
    """(the inside of an `<svg viewBox="0 0 840 height">`, height): two bars for each level, which
    show the share of its links in each load class, before and after."""
    parts, y = [], 0.0
    for level in channel_levels(fabric):
        parts.append(
            text(
                0,
                y + 20,
                f"{level.name} ({plural(f'{len(level.channels):,}', 'link')})",
                style="heading",
            )
        )
        y += 28
        for word, load in (("before", before), ("after", after)):
            own = load[level.channels]
            parts.append(text(86, y + 19, word, "end"))
            x = 98.0
            for k, count in enumerate(np.bincount(load_classes(own), minlength=7).tolist()):
                wide = count / len(own) * 560
                if count:
                    parts.append(
                        f'<rect class="h{k}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="26"/>'
                    )
                x += wide
            parts.append(text(670, y + 19, f"{own.max():.2f} × full"))
            y += 32
        y += 12
    return "\n".join(parts), y
