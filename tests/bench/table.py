"""A table of measurements, for the terminal and for the documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """A table with the sentences of `goal`, and a `note` on how it was measured."""

    title: str
    columns: Sequence[str]
    note: str
    rows: list[Sequence[str]] = field(default_factory=list)
    goals: list[str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Adds a row."""
        self.rows.append(cells)

    def text(self) -> str:
        """The table for the terminal."""
        return "\n".join([f"\n{self.title}", *self._lines(), *self.goals])

    def markdown(self, command: str, level: int = 2) -> str:
        """The table for a document; `command` measures it again."""
        goals = [f"- {sentence}" for sentence in self.goals]
        parts = [
            f"{'#' * level} {self.title}",
            "",
            f"`{command}`",
            "",
            self.note,
            "",
            *self._lines(),
        ]
        return "\n".join([*parts, "", *goals]).rstrip() + "\n"

    def _lines(self) -> Iterator[str]:
        """Markdown rows that are also readable in a terminal: text on the left, numbers on the "
        "right."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        for row in (self.columns, rule, *self.rows):
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            yield f"| {' | '.join([row[0].ljust(widths[0]), *cells[1:]])} |"


def goal(what: str, measured: float, limit: float, unit: str, *, at_least: bool = False) -> str:
    """`sar at …: 0.05 s; goal at most 0.1 s: reached`."""
    reached = measured >= limit if at_least else measured <= limit
    word = "at least" if at_least else "at most"
    unit = f" {unit}" if unit else ""
    return (
        f"{what}: {measured:.4g}{unit}; goal {word} {limit:g}{unit}: "
        f"{'reached' if reached else 'NOT reached'}"
    )
