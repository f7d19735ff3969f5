"""The JSON of `squeue --json`, Slurm 21.08 and later, and of slurmrestd, which is the same.

It contains more than the pipe format (the admin comment) but takes twenty times as long to print
and read, so it is read from files and from slurmrestd, and squeue is never polled for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_agent.jobs.record import PENDING, JobRecord, traffic_hint
from sar_agent.jobs.source import jobs_of_file
from sar_agent.slurm.states import RUNNING_STATES, state_of_flags
from sar_agent.util.hostlist import expand

_NO_JOB = (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError)


def parse_squeue_json(
    text: str,
    source: str | Path | None = None,
    states: Collection[str] = RUNNING_STATES,
    hostless: bool = False,
) -> tuple[JobRecord, ...]:
    """The jobs in one of `states` that hold nodes, or also `hostless` ones; components of
    heterogeneous jobs are merged.

    A traffic hint in the admin comment, which only the site can set, wins over the user's. Entries
    that are not a job are passed over and logged. Raises InputError with `source` if this is not
    JSON or not a list of jobs, or half of them cannot be read.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: of a number, too
        at = error if isinstance(error, json.JSONDecodeError) else None
        line, cut = (at.lineno, _is_cut(text, at)) if at else (None, False)
        raise InputError(
            "the JSON is cut short" if cut else f"not JSON ({str(error)[:200]})",
            file=source,
            line=line,
            remedy="save it again with: squeue --json" * cut,
        ) from error
    jobs = document.get("jobs") if isinstance(document, dict) else document or None
    if not isinstance(jobs, list) or (jobs and not any(isinstance(job, dict) for job in jobs)):
        raise InputError(
            'JSON without a list "jobs"', file=source, remedy="save it with: squeue --json"
        )
    records, bad = records_of(jobs, states, hostless)
    return jobs_of_file(records, [InputError(why, file=source) for why in bad], len(jobs))


def records_of(
    jobs: Sequence[Any], states: Collection[str], hostless: bool = False
) -> tuple[list[JobRecord], list[str]]:
    """The jobs of such a list in one of `states` that hold nodes, or also `hostless` ones, as they
    are listed, and why others could not be read."""
    records, bad = list[JobRecord](), list[str]()
    for place, job in enumerate(jobs, 1):
        what = f"job no. {place} of the list"
        try:
            record = _record(job, states, hostless)
        except _NO_JOB as error:
            why = f"lacks {error}" if isinstance(error, KeyError) else "has a value of another kind"
            bad.append(f"{what} {why}")
        except InputError as error:
            bad.append(f"{what}: {error.what}")
        else:
            records += [record] if record else []
    return records, bad


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text ends before the value does."""
    return error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")


def _record(job: dict[str, Any], states: Collection[str], hostless: bool) -> JobRecord | None:
    state = job["job_state"]
    if isinstance(state, list):  # since 23.11 (data_parser v0.0.40): the base state, then flags
        state = state_of_flags(state)
    nodes = job.get("scheduled_nodes" if state == PENDING else "nodes") or ""
    if state not in states or not (nodes or hostless):
        return None
    start = _number(job.get("start_time"))
    return JobRecord(
        _identity(job),
        expand(nodes) if nodes else (),
        state,
        str(job.get("user_name") or job.get("user_id", "")),
        str(job.get("partition") or ""),
        float(start) if start else None,
        traffic_hint(_text(job.get("admin_comment")), _text(job.get("comment"))),
        _number(job.get("user_id")),
        (str(_whole(job["job_id"])),),
    )


def _identity(job: dict[str, Any]) -> str:
    """The id as squeue prints it, so that a job has the same id from every source."""
    heterogeneous = _number(job.get("het_job_id"))
    if heterogeneous:
        return f"{heterogeneous}+{_number(job.get('het_job_offset')) or 0}"
    array, task = _number(job.get("array_job_id")), _number(job.get("array_task_id"))
    if array and task is not None:
        return f"{array}_{task}"
    return str(_whole(job["job_id"]))


def _whole(value: Any) -> int:
    """A number that must be there."""
    number = _number(value)
    if number is None:
        raise ValueError("no number")
    return number


def _number(value: Any) -> int | None:
    """A number, plain or (since 23.02) as {"set": true, "infinite": false, "number": 7}."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set") else None
    return None if value is None else int(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
