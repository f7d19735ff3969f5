"""The job-to-terminal map: text, one `host jobid` a line, `#` comments.

It is the input format of the original SAR patch for OpenSM (Algorithm 1's B := [(nodeName,
jobID)]), so a site with that patch can use our map. The patch reads integers only and drops
`123_4`; so array tasks are written under integers of their own, and a comment gives their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import jobs_of_file
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_text

_HOST = re.compile(r"[A-Za-z0-9_.\-]+")
_ID = re.compile(r"\d{1,18}(?:_\d{1,18}|\+\d{1,18})?")
_NAMED = re.compile(r"#\s*(\d{1,18}) is (\S+)")


def format_jobmap(records: Iterable[JobRecord]) -> str:
    """The map's text, hosts of a job in their order, jobs in theirs.

    Plain ids are kept. Every other id is replaced by an integer above all plain ones, in the order
    of the jobs; a line `# 18 is 6_2` announces it, which `parse_jobmap` reads back.
    """
    jobs = list(records)
    next_free = 1 + max((int(job.id) for job in jobs if job.id.isdecimal()), default=0)
    lines = ["# host jobid, written by sar-agent"]
    for job in jobs:
        number = job.id
        if not number.isdecimal():
            number = str(next_free)
            next_free += 1
            lines.append(f"# {number} is {job.id}")
        lines += [f"{host} {number}" for host in job.hosts]
    return "\n".join(lines) + "\n"


def parse_jobmap(text: str, source: str | Path | None = None) -> tuple[JobRecord, ...]:
    """The jobs of a map, in the order of their first lines, all in state RUNNING.

    Ids may be `123`, `123_4` or `9+1` (merged into `9`). Lines that are not `host jobid` are passed
    over and logged. Raises InputError with `source` and line where they are half or more.
    """
    names: dict[str, str] = {}
    hosts: dict[str, dict[str, None]] = {}
    bad: list[InputError] = []
    lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        if named := _NAMED.fullmatch(line.strip()):
            names[named.group(1)] = named.group(2)
        words = line.partition("#")[0].split()
        if not words:
            continue
        lines += 1
        if len(words) != 2 or not _HOST.fullmatch(words[0]) or not _ID.fullmatch(words[1]):
            turned = len(words) == 2 and _HOST.fullmatch(words[1]) and _ID.fullmatch(words[0])
            bad.append(
                InputError(
                    f"{line[:80]!r} is not `host jobid`"
                    + (", the columns are exchanged" * bool(turned)),
                    file=source,
                    line=number,
                    remedy="write the host first, then the job id"
                    if turned
                    else "write one host and one job id a line, comments after #",
                )
            )
            continue
        hosts.setdefault(names.get(words[1], words[1]), {})[words[0]] = None
    jobs = (JobRecord(job, tuple(where), "RUNNING") for job, where in hosts.items())
    return jobs_of_file(jobs, bad, lines)


def write_jobmap(path: str | Path, records: Iterable[JobRecord]) -> None:
    """Replace the map at `path` in one step: a reader sees the old text or the new, never half.

    Raises `InputError` if the file cannot be written (disk full, no such directory); the old map
    then stays as it was.
    """
    write_text(Path(path), format_jobmap(records), PRIVATE)
