"""Reads the output of `sacct --json` (Slurm 21.08 and later), also of a truncated file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_lab.history.accounting_records import AccountingRecords
from sar_lab.history.job_history import JobHistory
from sar_lab.history.sacct_text import COMMAND

_REMEDY = f"save it with: sacct -a --json, or: {COMMAND}"


def parse_sacct_json(text: str, source: str | Path) -> JobHistory:
    """Raises `InputError` where the text is no such JSON, or no job is left."""
    records = AccountingRecords(str(source))
    try:
        document = json.loads(text)
        jobs = document["jobs"] if isinstance(document, dict) else document  # jq .jobs
        if not isinstance(jobs, list):
            raise InputError('the file has no list "jobs"', file=source, remedy=_REMEDY)
    except RecursionError as error:
        raise InputError(
            "is not sacct JSON: its lists are nested too deeply", file=source, remedy=_REMEDY
        ) from error
    except json.JSONDecodeError as error:
        jobs = list(_whole_jobs(text))
        records.builder.leave_out(
            "truncated files (the jobs before the end are used)", f"line {error.lineno}"
        )
    except (KeyError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise InputError('the file has no list "jobs"', file=source, remedy=_REMEDY) from error
    if any(isinstance(job, dict) and "job_state" in job for job in jobs):
        raise InputError(
            "this is squeue's JSON, which describes one moment, not a history",
            file=source,
            remedy=_REMEDY,
        )
    for number, job in enumerate(jobs, 1):
        try:
            records.add(*_row(job), unix=True)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
            records.builder.leave_out("entries that are not a job", f"entry {number}")
    return records.build()


def _row(job: dict[str, Any]) -> tuple[str, float | None, float | None, str, str]:
    id = str(_number(job["job_id"]))
    array, het = job.get("array") or {}, job.get("het") or {}
    task = _number(array.get("task_id", array.get("task")))
    if _number(array.get("job_id")) and task is not None:
        id = f"{_number(array['job_id'])}_{task}"
    if _number(het.get("job_id")):
        id = f"{_number(het['job_id'])}+{_number(het.get('job_offset')) or 0}"
    state = job["state"]["current"]
    times = (_number(job["time"][which]) or None for which in ("start", "end"))
    start, end = (None if it is None else float(it) for it in times)
    return id, start, end, job["nodes"] or "", state[0] if isinstance(state, list) else state


def _number(value: Any) -> int | None:
    """Plain, or as later releases wrap it: {"set": true, "infinite": false, "number": 5}."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set") else None
    return None if value is None else int(value)


def _whole_jobs(text: str) -> Iterator[Any]:
    """The complete elements of "jobs"."""
    at = text.find("[", max(0, text.find('"jobs"')))
    decoder = json.JSONDecoder()
    while at >= 0:
        start = text.find("{", at)
        if start < 0:
            return
        try:
            job, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield job
