"""Messages of rings on their way from leaf to leaf, before and after, as one SVG.

The way up and down a tree is unfolded from left to right, so that each column is a step. Where
messages share a cable, their lines lie side by side on a broad band. Lines differ in dashes, too,
so that the picture is readable without colour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sar_lab.assess.charts import WIDTH, text
from sar_lab.page_templates import templates

COLUMN_PAD, ROW, HEAD = 32.0, 46.0, 40.0
DASHES = "none", "7 4", "2 4"
COLOURS = "--after", "--before", "--ink"


class Side(NamedTuple):
    """The ways of messages on some tables."""

    ways: Sequence[Sequence[str]]
    """Of each message the names of its switches."""
    ports: Sequence[Sequence[int]]
    """Of each message the ports by which it leaves them, but for the last."""

    @property
    def most(self) -> int:
        """Messages on the fullest cable."""
        return max(map(len, self.users().values()))

    def users(self) -> dict[tuple[int, str, str], list[int]]:
        """The messages over each cable, by its step."""
        found: dict[tuple[int, str, str], list[int]] = defaultdict(list)
        for message, way in enumerate(self.ways):
            for step, (one, next_one) in enumerate(pairwise(way)):
                found[step, one, next_one].append(message)
        return found


def ring_picture(names: Sequence[tuple[str, str, str]], before: Side, after: Side) -> str:
    """The SVG. `names`: of each message its job, the host that sends and the one that receives."""
    parts, y = [], 0.0
    for title, side in (("D-mod-k", before), ("rings apart", after)):
        words = f"{title}: {side.most} message{'s' * (side.most != 1)} on the fullest cable"
        drawn, y = _panel(words, side, y)
        parts += drawn
    for message, (job, source, to) in enumerate(names):
        y += 22
        parts.append(f'<path {_style(message)} d="M12 {y - 4:.0f}h34"/>')
        parts.append(text(56, y, f"job {job}: {source} to {to}"))
    return templates().get_template("ring-picture.svg").render(
        width=WIDTH, height=round(y + 14), picture="\n".join(parts),
        label="; ".join(f"job {job}: {source} to {to}" for job, source, to in names),
    )  # fmt: skip


def _panel(title: str, side: Side, top: float) -> tuple[list[str], float]:
    """The parts, and where the panel ends."""
    columns = max(map(len, side.ways))
    rows = [
        list(dict.fromkeys(way[k] for way in side.ways if k < len(way))) for k in range(columns)
    ]
    tallest = max(map(len, rows))
    step = (WIDTH - 2 * COLUMN_PAD) / (columns - 1)
    place = {
        (k, name): (
            COLUMN_PAD + k * step,
            top + HEAD + ROW * (i + (tallest - len(column)) / 2),
        )
        for k, column in enumerate(rows)
        for i, name in enumerate(column)
    }
    parts = [text(12, top + 18, title, style="strong")]
    lines = []
    for (k, one, next_one), users in side.users().items():
        (x1, y1), (x2, y2) = place[k, one], place[k + 1, next_one]
        if len(users) > 1:
            width = 7 * len(users) + 4
            parts.append(
                f'<path class="shared" stroke-width="{width}" '
                f'd="M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"/>'
            )
        for i, message in enumerate(users):
            off = 6 * (i - (len(users) - 1) / 2)
            lines.append(
                f'<path {_style(message)} d="M{x1:.0f} {y1 + off:.1f}L{x2:.0f} {y2 + off:.1f}"/>'
            )
    ports = {(way[0], port[0]) for way, port in zip(side.ways, side.ports, strict=True)}
    first = {name for name, _ in ports}
    parts += lines
    for (_, name), (x, y) in place.items():
        parts.append(
            f'<rect class="switch" x="{x - 7:.0f}" y="{y - 7:.0f}" width="14" height="14"/>'
        )
        parts.append(text(x, y + 22, name, "middle", "small"))
    if len(first) == 1:
        listed = ", ".join(str(port) for _, port in sorted(ports))
        parts.append(
            text(
                12,
                top + HEAD + ROW * tallest + 4,
                f"{first.pop()} sends by port{'s' * (len(ports) > 1)} {listed}",
                style="small",
            )
        )
    return parts, top + HEAD + ROW * tallest + 16


def _style(message: int) -> str:
    kind = message % len(DASHES)
    return f'class="message" style="stroke: var({COLOURS[kind]})" stroke-dasharray="{DASHES[kind]}"'
