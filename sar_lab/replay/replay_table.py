"""Prints the result of a replay."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from sar_agent.util.plural import plural
from sar_lab.history import LeftOut
from sar_lab.replay.table1 import METRICS

_COLUMNS = {
    "effective_efi_max": ("max EFI", 1.0, ".1f"),
    "job_efi_own": ("a job's own", 1.0, ".1f"),
    "dark_fiber_ratio": ("dark %", 100.0, ".1f"),
    "job_links": ("links a job", 1.0, ".1f"),
    "load_max": ("max load", 1.0, ".2f"),
    "throughput_mean": ("share", 1.0, ".2f"),
    "entries_changed": ("entries", 1.0, ".0f"),
}


def print_replay(replay: dict[str, Any]) -> None:
    """Prints the contents of `replay.json`."""
    console = Console(highlight=False)
    changes = replay["reconfigurations"]
    console.print(
        f"{replay['fabric']}, {replay['history']}: {plural(replay['moments'], 'moment')}, "
        f"{replay['states']} different states; {plural(replay['multi_switch_jobs'], 'job')} that "
        "span "
        f"switches; {changes['mean']:.1f} reconfigurations a day "
        f"({changes['min']} … {changes['max']})",
        markup=False,
    )
    for remark in replay["remarks"]:
        console.print(f"note: {remark}", markup=False)
    for each in replay["left_out"]:
        console.print(f"left out: {LeftOut(**each)}", markup=False)
    console.print(_means(replay))
    if replay["table1"]:
        console.print(_table1(replay["table1"]))


def _means(replay: dict[str, Any]) -> Table:
    table = Table(
        "engine", *(title for title, _, _ in _COLUMNS.values()), title="means over all moments"
    )
    for engine, means in replay["engines"].items():
        cells = (
            "–" if means[name] is None else format(means[name] * times, form)
            for name, (_, times, form) in _COLUMNS.items()
        )
        table.add_row(engine, *cells)
    return table


def _table1(gains: list[dict[str, Any]]) -> Table:
    table = Table(
        "",
        "against",
        "metric",
        "max.",
        "%",
        "avg.",
        "%",
        title="Table 1 of sar-2016: positive is better",
    )
    for gain in gains:
        name, _ = METRICS[gain["metric"]]
        table.add_row(
            gain["ours"],
            gain["other"],
            name,
            f"{gain['largest']:.1f}",
            _or_dash(gain["largest_percent"]),
            f"{gain['mean']:.1f}",
            _or_dash(gain["mean_percent"]),
        )
    return table


def _or_dash(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
