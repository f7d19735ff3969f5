"""Files of running jobs, in any of the forms that a site may have at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.jobs.jobmap import parse_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.squeue_text import FORMAT, parse_squeue_pipe
from sar_agent.slurm.states import RUNNING_STATES
from sar_agent.util.other_files import other_file
from sar_agent.util.text_files import json_part, read_text


def read_jobs_file(
    path: str | Path, states: Collection[str] = RUNNING_STATES, hostless: bool = False
) -> tuple[JobRecord, ...]:
    """The running jobs of `path`: JSON of squeue, its pipe text or a
    job-to-terminal map. The content decides which; gzip is undone.

    An empty file holds no jobs. `hostless`: those without nodes, too. Raises `InputError` with the
    file and the line, if any.
    """
    path = Path(path)
    text = read_text(path, may_be_empty=True)
    if json := json_part(text):
        return parse_squeue_json(json, path, states, hostless)
    head = [line for line in map(str.strip, text.splitlines()) if line][:5]
    first = head[0] if head else ""
    if "|" in first or any(line.count("|") > 1 for line in head):  # after a word of -M, a warning
        return parse_squeue_pipe(text, path, states, hostless)
    if first.lower().startswith(("job,", "jobid,")) and not _other_queue(head):
        raise InputError(
            "this is a job history, not the running jobs",
            file=path,
            remedy="give it as --history of `assess` or `replay`",
        )
    try:
        return parse_jobmap(text, path)
    except InputError as error:
        if what := _other_queue(head) or other_file(text):
            remedy = f"save it with: squeue -h -o '{FORMAT}', or squeue --json"
            raise InputError(
                f"this is {what}, not a list of jobs", file=path, remedy=remedy
            ) from error
        raise


_STATE = r"(?:RUNNING|PENDING|COMPLETING|SUSPENDED|CONFIGURING)"
_SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}


def _other_queue(head: Sequence[str]) -> str:
    """What the first lines are, if a queue in a form that is not read; else empty."""
    if any(re.fullmatch(r"---|%YAML.*|jobs:|meta:(?: !!.*)?|jobs: !!.*", line) for line in head):
        return "the YAML of squeue"
    for separator, name in _SEPARATORS.items():
        if any(re.match(rf"\d\S*{separator} ?{_STATE}{separator}", line) for line in head):
            return f"columns of squeue with {name} between them"
    return ""
