"""A plain trace: `job,start,end,nodelist` with a header; node lists with commas in quotes."""

from __future__ import annotations

import csv
from pathlib import Path

from sar_agent.errors import InputError
from sar_lab.history.accounting_records import CUT, AccountingRecords
from sar_lab.history.job_history import JobHistory
from sar_lab.history.times import row_times

COLUMNS = ("job", "start", "end", "nodelist")


def looks_like_trace(first: str) -> bool:
    """Whether the first line has the columns of a trace."""
    return set(COLUMNS) <= {word.strip().lower() for word in first.split(",")}


def parse_trace_csv(text: str, source: str | Path) -> JobHistory:
    """Times are seconds since 1970 or have the form 2016-12-22T07:15:12; the end of a running job
    is empty. Raises `InputError` where the header is wrong, or no job is left.
    """
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    columns = [word.strip().lower() for word in next(rows, [])]
    if not set(COLUMNS) <= set(columns):
        raise InputError(
            f"the first line is not {','.join(COLUMNS)}",
            file=source,
            line=1,
            remedy="write this header",
        )
    at = [columns.index(name) for name in COLUMNS]
    records = AccountingRecords(str(source))
    for row in rows:
        if not row:
            continue
        try:
            id, start, end, nodes = (row[i] for i in at)
            begun, over, unix = row_times(start, end)
        except (ValueError, IndexError):
            records.builder.leave_out(CUT, f"line {rows.line_num}")
            continue
        records.add(id, begun, over, nodes, unix=unix)
    return records.build()
