"""One look-up of jobs by the names that Slurm and our own commands print.

A job is found by its id (`17`, `6_2`), by the number of a task or component (`103`), by a component
(`9+1`), by a step (`17.0`, `17.batch`), and with its cluster before it (`beta:17`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from sar_agent.errors import InputError
from sar_agent.jobs.record import JobRecord

_STEP = re.compile(r"(?<=[\d\]])\.(?:\d+|batch|extern|interactive)(?:\+\d+)?$")
_TASKS = re.compile(r"(\d+)_\[([\d,\-:.]+)(?:%\d+)?\]")
_SHOWN = 4


def find_job(records: Sequence[JobRecord], named: str) -> JobRecord | None:
    """The job of this name; None where none of these is. An id goes before a number. Raises
    `InputError` where the name is of several jobs."""
    for meant in job_names(named):
        if found := [record for record in records if record.id == meant]:
            return found[0]
        if found := [record for record in records if meant in record.numbers]:
            return found[0]
    name = _STEP.sub("", named.strip())
    found = [*_of_tasks(records, name)]
    leader = name.partition("+")[0]
    found += [record for record in records if record.id.endswith(f":{leader}")]
    if len(found) > 1:
        shown = ", ".join(record.id for record in found[:_SHOWN])
        raise InputError(f"{named} names {len(found)} jobs", remedy=f"name one of them: {shown}")
    return found[0] if found else None


def job_names(named: str) -> tuple[str, ...]:
    """The names that `9+1.0` and `beta:17.batch` may be in a list of jobs, the nearest first: the
    same without a step, then the leader, then without the cluster."""
    name = _STEP.sub("", named.strip())
    return tuple(dict.fromkeys((name, name.partition("+")[0], name.rpartition(":")[2])))


def similar_jobs(records: Iterable[JobRecord], named: str) -> str:
    """`did you mean 6_1 or 6_2? `, with a blank at its end; empty where no job is similar."""
    ids = [record.id for record in records]
    number = re.split(r"[_+.]", named)[0]
    meant = [i for i in ids if i.rpartition(":")[2].split("_")[0] == number]
    meant = meant or get_close_matches(named, ids, n=3, cutoff=0.75)
    return f"did you mean {' or '.join(meant[:3])}? " if meant else ""


def require_job(
    records: Sequence[JobRecord],
    named: str,
    whole_queue: Callable[[], Sequence[JobRecord]] = tuple,
) -> JobRecord:
    """As `find_job`. Raises `InputError`, with similar ids, where none of these is meant; with its
    state where it is a job of `whole_queue`."""
    record = find_job(records, named)
    if record is not None:
        return record
    remedy = "list the running jobs with squeue -t running"
    queue = whole_queue()
    other = (find_job(queue, named) or _waiting(queue, named)) if queue else None
    if other is not None and other.state == "RUNNING":
        raise InputError(f"job {other.id} holds no node", remedy=remedy)
    if other is not None:
        state = other.state.lower().replace("_", " ")
        raise InputError(f"job {other.id} is {state}, not running", remedy=remedy)
    raise InputError(
        f"no job {named} is running: it waits, has ended, or is not in this queue",
        remedy=similar_jobs(records, named) + remedy,
    )


def _of_tasks(records: Iterable[JobRecord], name: str) -> Iterable[JobRecord]:
    """Jobs of `6_[1-3,7%2]`."""
    match = _TASKS.fullmatch(name)
    if not match:
        return []
    ends = _spans(match[2])

    def named(record: JobRecord) -> bool:
        job, _, task = record.id.partition("_")
        return job == match[1] and task.isdecimal() and any(a <= int(task) <= b for a, b in ends)

    return [record for record in records if named(record)]


def _waiting(queue: Iterable[JobRecord], named: str) -> JobRecord | None:
    """The tasks that wait in one line, `6_[1-3%2]`, of which `6` or `6_2` is."""
    for name in job_names(named):
        job, _, task = name.partition("_")
        for record in queue:
            match = _TASKS.fullmatch(record.id.rpartition(":")[2])
            if match and match[1] == job:
                spans = _spans(match[2])
                if not task or (task.isdecimal() and any(a <= int(task) <= b for a, b in spans)):
                    return record
    return None


def _spans(text: str) -> list[tuple[int, int]]:
    """First and last of `1-3`, `7`, `0-9:2`; Slurm cuts a long list short with `...`."""
    spans = [span.partition(":")[0].partition("-") for span in text.split(",")]
    return [
        (int(low), int(high or low))
        for low, _, high in spans
        if low.isdecimal() and (high.isdecimal() or not high)
    ]
