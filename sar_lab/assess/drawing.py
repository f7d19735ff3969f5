"""The network as an SVG picture: rows of switches, every cable coloured by effective EFI.

A cable carries both directions, so each half of its line shows one: the half at a switch is what
that switch sends. Colour and width grow together, so that the picture is readable without colour; a
direction that no job can use is a thin dashed line. The SVG is written by hand rather than by
matplotlib: a page of it has 50 kB, follows the reader's light or dark scheme, and needs no import
of a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import Bool

WIDTH, PAD, ROW = 840, 24, 340
LEVELS = 6
MOST_CHANNELS = 6000
"""With more channels a drawing is unreadable; the histograms still show every link."""
EFI = NDArray[np.int64]


def bin_width(*efis: EFI) -> int:
    """Routes for each colour step, so that the hottest link of all pictures has the last colour."""
    return max(1, -(-max(int(efi.max(initial=0)) for efi in efis) // LEVELS))


def drawable(fabric: Fabric) -> bool:
    return 0 < int(fabric.channel_up.sum()) <= MOST_CHANNELS


def rows(fabric: Fabric) -> int:
    """The number of rows of switches in the drawing."""
    return int(_rows(fabric).max()) + 1


def height(fabric: Fabric) -> int:
    return 2 * PAD + max(1, rows(fabric) - 1) * ROW


def draw_network(fabric: Fabric, efi: EFI, width: int, shown: Bool | None = None) -> str:
    """The inside of an `<svg viewBox="0 0 840 height">`; `shown`: bool[C], None for all."""
    shown = fabric.channel_up if shown is None else shown & fabric.channel_up
    place = _places(fabric)
    lines: dict[int, list[str]] = defaultdict(list)
    parallel: Counter[tuple[int, int]] = Counter()
    shift = np.zeros(fabric.channels, np.int32)
    for c in range(fabric.channels):
        ends = int(fabric.channel_source[c]), int(fabric.channel_target[c])
        if fabric.channel_reverse[c] > c:
            shift[c] = shift[fabric.channel_reverse[c]] = 5 * parallel[min(ends), max(ends)]
            parallel[min(ends), max(ends)] += 1
        if shown[c]:
            (x1, y1), (x2, y2) = place[ends[0]], place[ends[1]]
            flat = 60 if y1 == y2 else 0  # a cable within a row bows upwards
            middle = f"{(x1 + x2) / 2 + shift[c]:.0f} {(y1 + y2) / 2 - flat:.0f}"
            lines[-(-int(efi[c]) // width)].append(f"M{x1:.0f} {y1:.0f}L{middle}")
    drawn = [f'<path class="link q{k}" d="{"".join(lines[k])}"/>' for k in sorted(lines)]
    size = 8 if len(place) < 80 else 4
    drawn += [
        f'<rect class="switch" x="{x - size:.0f}" y="{y - size:.0f}" width="{2 * size}" '
        f'height="{2 * size}"/>'
        for x, y in place
    ]
    return "\n".join(drawn)


def _rows(fabric: Fabric) -> NDArray[np.int32]:
    """int32[S]: hops to the nearest leaf switch; 0 is drawn at the bottom.

    A switch counts as a leaf if it has at least a quarter of the hosts of the fullest one, so
    that a spine with one management or aggregation node is drawn as a spine.
    """
    row = np.full(fabric.switches, -1, np.int32)
    row[fabric.terminals_at * 4 >= max(1, int(fabric.terminals_at.max()))] = 0
    source, target = fabric.channel_source[fabric.channel_up], fabric.channel_target
    target = target[fabric.channel_up]
    for hops in range(fabric.switches):
        reached = target[row[source] == hops]
        fresh = reached[row[reached] < 0]
        if not len(fresh):
            break
        row[fresh] = hops + 1
    row[row < 0] = 0
    return row


def _places(fabric: Fabric) -> list[tuple[float, float]]:
    row = _rows(fabric)
    bottom = height(fabric) - PAD
    members = np.bincount(row)
    seen: Counter[int] = Counter()
    places = []
    for r in row.tolist():
        x = (seen[r] + 0.5) / members[r] * WIDTH
        seen[r] += 1
        places.append((x, float(bottom - r * ROW)))
    return places
