"""What a row found: claims, tables and a drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sar_lab.research.papers.claims import Claim, counts, verdict
from sar_lab.research.statistics import median_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is imported when something is drawn, if it is there
    Axes = Figure = Any

Row = TypeVar("Row")
Column = TypeVar("Column")


@dataclass(frozen=True)
class ResultTable:
    """A table whose cells are text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterable[str]:
        """The lines of the table in Markdown."""
        yield _cells(self.head)
        yield _cells("---" for _ in self.head)
        yield from map(_cells, self.rows)


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def median_table(
    title: str,
    columns: Mapping[str, Column],
    rows: Mapping[str, Row],
    draws: Callable[[Row, Column], Sequence[float]],
    digits: int = 2,
) -> ResultTable:
    """The medians of the draws of each row and column, which have their labels as keys."""
    cells = [
        [label, *(median_of(draws(row, column)).words(digits) for column in columns.values())]
        for label, row in rows.items()
    ]
    return ResultTable([title, *columns], cells)


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    claims: Sequence[Claim]
    tables: Sequence[ResultTable] = ()
    draw: Callable[[Figure], None] | None = None
    """Fills the row's picture."""
    as_printed: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    """The same claims, judged for a mechanism as it is printed where that of the row is ours: name
    of the reading → claims."""
    words: Mapping[str, object] = field(default_factory=dict)
    """What the texts of the row's record name and its module does not have."""
    qualified: str = ""
    """What the verdict has to say: "with our exact shift", "fitted"."""
    how: str = ""
    """The setup, for the reader."""
    because: str = ""
    """The known reason why a claim does not hold."""
    size: tuple[float, float] = (8.0, 4.0)
    """Of the picture, in inches."""

    @property
    def verdict(self) -> str:
        """One line: `reproduced`, `same shape` or `not`, and why."""
        line = verdict(self.claims, self.because, self.qualified)
        printed = [f"{name}: {counts(each)}" for name, each in self.as_printed.items()]
        return "; ".join([line, *printed])

    @property
    def table(self) -> str:
        """Our numbers beside the published ones, as text."""
        rows = [
            [c.says, c.kind, c.published, c.ours, c.answer, *(e.answer for e in others)]
            for c, *others in zip(self.claims, *self.as_printed.values(), strict=True)
        ]
        head = ["", "kind", "published", "ours", "holds", *self.as_printed]
        return "\n".join(ResultTable(head, rows).lines() if rows else ())

    def json(self) -> dict[str, Any]:
        """Our numbers."""
        found: dict[str, Any] = {
            "claims": [asdict(claim) for claim in self.claims],
            "how": self.how,
            "tables": [
                {"head": list(t.head), "rows": [list(r) for r in t.rows]} for t in self.tables
            ],
        }
        found["as_printed"] = {
            name: [asdict(claim) for claim in each] for name, each in self.as_printed.items()
        }
        return found | {"because": self.because, "qualified": self.qualified}
