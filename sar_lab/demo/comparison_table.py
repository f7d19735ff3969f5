"""The table that `sar-agent demo` prints."""

from __future__ import annotations

from rich.table import Table

from sar_lab.demo.engine_results import Comparison


def comparison_table(comparison: Comparison) -> Table:
    """A column for each engine and a row for each measure; it fits into 80 columns."""
    results = comparison.results
    table = Table(title=None, caption_justify="left")
    table.add_column("")
    for result in results:
        table.add_column(result.engine, justify="right")
    table.add_column("lower bound", justify="right")
    bound = str(comparison.before.lower_bound_efi_max)
    measures = [result.measures for result in results]
    rows: list[tuple[str, list[str], str]] = [
        ("dark fiber", [f"{m.dark_fiber_ratio:.1%}" for m in measures], ""),
        ("max effective EFI", [str(m.effective_efi_max) for m in measures], bound),
        ("mean effective EFI", [f"{m.effective_efi_mean:.1f}" for m in measures], ""),
        ("share of speed, mean job", [f"{m.throughput_mean:.2f}" for m in measures], ""),
        ("share of speed, worst job", [f"{m.throughput_min:.2f}" for m in measures], ""),
        ("seconds to route", [f"{r.seconds:.4f}" for r in results], ""),
        ("check of the routes", [_short(r.checked) for r in results], ""),
    ]
    for name, cells, beat in rows:
        table.add_row(name, *cells, beat)
    return table


def _short(verdict: str) -> str:
    return verdict if verdict == "passed" else "FAILED"
