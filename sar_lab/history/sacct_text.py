"""Reads the output of `sacct -P`: columns between bars, named in the first line.

Without that line (`-n`) the columns are known only for one format: that of XDMoD's collector, which
many sites keep.
"""

from __future__ import annotations

from pathlib import Path

from sar_agent.errors import InputError
from sar_lab.history.accounting_records import CUT, AccountingRecords
from sar_lab.history.job_history import JobHistory
from sar_lab.history.times import row_times

COMMAND = "sacct -a -X -P -S 2026-01-01 -o JobID,Start,End,State,NodeList"
OTHER_TIMES = (
    f"lines with times in another format (save it with: SLURM_TIME_FORMAT=standard {COMMAND})"
)
WANTED = ("JobID", "Start", "End", "NodeList")
HEAD = 5
"""Lines among which the header is: a warning may stand before it."""
XDMOD = [
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS"),
    *("ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
]


def parse_sacct_text(text: str, source: str | Path) -> JobHistory:
    """Truncated lines are left out and counted. Raises `InputError` with file and line where the
    columns are unknown, or no job is left."""
    lines = text.splitlines()
    columns, first, bar = _columns(lines, source)
    at = [columns.index(name) for name in WANTED]
    state = columns.index("State") if "State" in columns else None
    # The last column (a job's name) may contain bars.
    least, records = len(columns), AccountingRecords(str(source))
    for number, line in enumerate(lines[first:], first + 1):
        if not line.strip():
            continue
        words = line.split(bar)
        if words[:least] == columns:
            continue  # the header again
        try:
            if len(words) < least:
                raise ValueError
            id, start, end, nodes = (words[i] for i in at)
        except ValueError:
            records.builder.leave_out(CUT, f"line {number}")
            continue
        try:
            begun, over, unix = row_times(start, end)
        except ValueError:
            records.builder.leave_out(OTHER_TIMES, f"line {number}")
            continue
        records.add(id, begun, over, nodes, words[state] if state is not None else "", unix=unix)
    return records.build()


def looks_like_sacct(first: str) -> bool:
    """Whether the first line is a header, or has XDMoD's number of columns."""
    return set(WANTED) <= set(first.split(_bar(first))) or first.count("|") == len(XDMOD) - 1


def _bar(header: str) -> str:
    """What stands between columns: a bar, or what `sacct --delimiter` was given; no commas, which
    are in lists of nodes."""
    return next((bar for bar in ";\t" if set(WANTED) <= set(header.split(bar))), "|")


def _columns(lines: list[str], source: str | Path) -> tuple[list[str], int, str]:
    """The names of columns, the first line below them, and what stands between columns."""
    heads = [i for i, line in enumerate(lines[:HEAD]) if looks_like_sacct(line.strip())]
    first = next(iter(heads or (i for i, line in enumerate(lines) if line.strip())), 0)
    bar = _bar(lines[first].strip()) if lines else "|"
    words = lines[first].strip().split(bar) if lines else []
    if set(WANTED) <= set(words):
        return (words[:-1] if words[-1] == "" else words), first + 1, bar  # -p ends with a bar
    if len(words) == len(XDMOD) and words[XDMOD.index("Start")][4:5] == "-":
        return XDMOD, first, bar
    missing = [name for name in WANTED if name not in words]
    raise InputError(
        f"no columns {', '.join(missing)} in the first line" if words else "is empty",
        file=source,
        line=first + 1,
        remedy=f"save it with: {COMMAND}",
    )
