"""The results of simulated traces, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.table import Table

from sar_lab.research.trace.play_trace import ProgramTime


def summary(times: Sequence[ProgramTime]) -> dict[str, Any]:
    """Slowdowns and seconds of communication over all sending jobs, and for each job."""
    detail = [each.json() for each in times]
    slow = [each["slowdown"] for each in detail if each["slowdown"] is not None]
    sending = [each["communication"] for each in detail]
    return {
        "slowdown_mean": float(np.mean(slow)) if slow else None,
        "slowdown_worst": max(slow, default=None),
        "communication_worst": max(sending, default=0.0),
        "seconds_worst": max((each["seconds"] for each in detail), default=0.0),
        "jobs_detail": detail,
    }


def trace_table(results: Sequence[dict[str, Any]]) -> Table:
    """A row for each set of routes; `results` are those of `summary` with the name as `engine`."""
    table = Table(
        title="slowdown of communication; 1.00 = limited by the hosts' own links only",
        title_justify="left",
    )
    table.add_column("routes", overflow="fold")
    for column in ("mean job", "worst job", "most communication", "longest job"):
        table.add_column(column, justify="right")
    for each in results:
        slow = [each["slowdown_mean"], each["slowdown_worst"]]
        table.add_row(
            each["engine"],
            *("–" if value is None else f"{value:.2f}" for value in slow),
            f"{each['communication_worst'] * 1e3:.3f} ms",
            f"{each['seconds_worst'] * 1e3:.3f} ms",
        )
    return table
