"""The table of simulated times that `sar-lab simulate-time` prints."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from sar_lab.fluid.simulate_jobs import JobTimes


def times_table(times: Mapping[str, JobTimes]) -> Table:
    """A row for each set of routes: simulated times, and times predicted from load."""
    table = Table()
    table.add_column("routes", overflow="fold")
    for what in ("time", "predicted"):
        for which in ("mean", "median", "worst"):
            table.add_column(f"{what}\n{which}", justify="right")
    for name, each in times.items():
        summary = each.summary()
        table.add_row(name, *(f"{value:.2f}" for value in summary.values()))
    return table
