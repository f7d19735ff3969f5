"""The table of congestion that `sar-lab count-congestion` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table


def congestion_table(results: Sequence[dict[str, Any]]) -> Table:
    """A row for each set of routes; `results` are those of `Congestion.json` with the name as
    `engine`."""
    first = results[0]
    table = Table(
        title=(
            f"{first['metric']} of {first['pattern']}: {first['ranks']} ranks, {first['runs']} runs"
        ),
        title_justify="left",
    )
    table.add_column("routes", overflow="fold")
    columns = ("min", "avg", "median", "max")
    for column in columns:
        table.add_column(column, justify="right")
    for each in results:
        table.add_row(each["engine"], *(_number(each[column]) for column in columns))
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")
