"""Makes an `ExperimentResult` from claims, tables and a drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sar_lab.research.papers.claims import Claim, verdict
from sar_lab.research.papers.pictures import save
from sar_lab.research.papers.registry import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def outcome(
    path: Path,
    claims: Sequence[Claim],
    how: str,
    *,
    because: str = "",
    tables: Sequence[ResultTable] = (),
    draw: Callable[[Figure], None] | None = None,
    size: tuple[float, float] = (8.0, 4.0),
) -> ExperimentResult:
    """`how` describes the setup for the reader. `because` is the known reason why a claim does not
    hold. `draw` fills the picture `path` of `size` inches."""
    drawn = draw is not None and save(draw, path, size)
    if draw and not drawn:
        how += " The picture needs `pip install 'sar-lab[papers]'`."
    ours = {
        "claims": [claim.json() for claim in claims],
        "how": how,
        "tables": [{"head": list(t.head), "rows": [list(r) for r in t.rows]} for t in tables],
    }
    if because:
        ours["because"] = because
    summary = ResultTable(
        ["", "published", "ours", "holds"],
        [[c.says, c.published, c.ours, c.answer] for c in claims],
    )
    return ExperimentResult(
        ours,
        verdict(claims, because),
        "\n".join(summary.lines()) if claims else "",
        path if drawn else None,
    )
