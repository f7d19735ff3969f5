"""What a trial found: predicted beside counted beside timed, for each set of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sar_lab.emulate.statistics import Summary, compare, summary
from sar_lab.trial.site_look import SiteLook
from sar_lab.trial.trial_run import Sample, TrialResult


@dataclass(frozen=True)
class Row:
    """One set of tables under one benchmark, alone or beside the second job."""

    tables: str
    at_once: float
    """Predicted time over that on the site's own tables, all messages at once."""
    phases: float
    """One message at a time."""
    load_max: float
    counted_max: float | None
    """Median over the runs of the largest share of its speed that a link carried."""
    rank: float | None
    """Median of the rank correlation of predicted and counted."""
    timed: Summary | None
    """Of what the benchmark printed."""
    ratio: Summary | None
    """Of the time over that on the site's own tables in the same round; None for these."""
    values: tuple[float, ...]
    differs: bool
    """Whether the interval of the ratio is on one side of 1, from rounds enough to say so."""


@dataclass(frozen=True)
class Table:
    """All tables under one benchmark."""

    benchmark: str
    beside: bool
    unit: str
    rows: tuple[Row, ...]


def tables_of(look: SiteLook, result: TrialResult) -> list[Table]:
    """One table for each benchmark, alone and beside the second job."""
    keys = dict.fromkeys((s.benchmark, s.beside) for s in result.samples)
    return [
        Table(name, second, own[0].unit, tuple(_row(look, own, t, second) for t in look.tables))
        for name, second in keys
        if (own := [s for s in result.samples if (s.benchmark, s.beside) == (name, second)])
    ]


def _row(look: SiteLook, samples: Sequence[Sample], tables: str, second: bool) -> Row:
    times = {t: {s.round: s.time for s in samples if s.tables == t} for t in look.tables}
    compared, mine = compare(times)[tables], [s for s in samples if s.tables == tables]
    counted = [s.counted_max for s in mine if s.counted_max is not None]
    ranks = [s.rank for s in mine if s.rank is not None]
    return Row(
        tables,
        look.ratio(tables, second, "at_once"),
        look.ratio(tables, second, "phases"),
        float(look.predicted[tables, second].load.max(initial=0.0)),
        median(counted) if counted else None,
        median(ranks) if ranks else None,
        summary([s.value for s in mine]),
        compared.ratio,
        tuple(s.value for s in mine),
        compared.differs,
    )


def headline(tables: Sequence[Table], aim: str) -> str:
    """One sentence on `aim`, which was chosen before anything was measured."""
    said = []
    for table in tables:
        row = next((r for r in table.rows if r.tables == aim and r.ratio), None)
        if row and row.ratio:
            where = f"{table.benchmark}{' beside the second job' if table.beside else ' alone'}"
            change = row.ratio.median - 1
            word = f"{abs(change):.0%} {'longer' if change > 0 else 'less time'}"
            said.append(f"{where} took {word if row.differs else f'{word} (not clear)'}")
    return f"With {aim}, {'; '.join(said)}." if said else "Nothing could be compared."


def as_json(look: SiteLook, result: TrialResult, tables: Sequence[Table]) -> dict[str, Any]:
    """trial.json."""
    return {
        **result.json(),
        "facts": dict(look.facts),
        "doubts": list(look.doubts),
        "nodes": list(look.nodes),
        "beside": list(look.beside),
        "tables": [
            {
                "benchmark": table.benchmark,
                "beside": table.beside,
                "unit": table.unit,
                "rows": [
                    vars(row)
                    | {
                        "timed": row.timed and row.timed._asdict(),
                        "ratio": row.ratio and row.ratio._asdict(),
                    }
                    for row in table.rows
                ],
            }
            for table in tables
        ],
    }
