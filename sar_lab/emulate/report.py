"""The table that `sar-lab emulate` prints."""

from __future__ import annotations

from rich.table import Table

from sar_lab.emulate.emulation import BUSY, Emulation
from sar_lab.emulate.statistics import Summary


def times_table(emulation: Emulation) -> Table:
    """A row for each program and tables."""
    table = Table()
    for column in ("run", "tables"):
        table.add_column(column, overflow="fold")
    for column in ("Mbit/s", "time", "over first", "spread", "idle"):
        table.add_column(column, justify="right")
    table.add_column("remarks", overflow="fold")
    for program in emulation.measured:
        for tables, row in emulation.compared(program).items():
            lost = program.lost(tables)
            remarks = [f"{len(lost)} lost, {lost[0]}"] if lost else []
            timed = None if program.busy else row.timed
            if timed and row.ratio and not row.differs:
                remarks.append("no clear difference")
            table.add_row(
                program.name,
                tables,
                f"{program.rate / 1e6:g}",
                _words(timed),
                _words(None if program.busy else row.ratio),
                f"{row.spread:.1%}" if timed else "–",
                f"{program.idle(tables):.2f}" if program.runs[tables] else "–",
                BUSY if program.busy else "; ".join(remarks),
            )
    return table


def _words(value: Summary | None) -> str:
    if value is None:
        return "–"
    if value.samples == 1:
        return f"{value.median:.3f}"
    return f"{value.median:.3f} [{value.low:.3f}, {value.high:.3f}]"
