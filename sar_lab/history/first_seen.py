"""A folder or tar archive of files `JOBID.txt` with one node per line. The time of a file is the
time at which the job was first seen running (CINECA's Leonardo was recorded so, every ten minutes).

The record holds no end times. A node that a later job uses was free by then, so a job is assumed to
last until the first of its nodes appears in a later job, or else to the end of the record. Idle
nodes make jobs appear longer than they were, shared nodes make them appear shorter. A report on
such a history must state this; `remarks` does.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from sar_agent.errors import InputError
from sar_lab.history.job_history import WITHOUT_NODES, HistoryBuilder, JobHistory

REMARK = (
    "The record holds no end times: a job is assumed to last until one of its nodes appears in a "
    "later job, or else to the end of the record, which overestimates the jobs at each moment."
)
COARSE = (
    "A start time is when the job was first seen, accurate to the recording interval (some "
    "minutes)."
)


def read_first_seen(path: Path) -> JobHistory:
    """Raises `InputError` where it cannot be read, or no job is in it."""
    builder = HistoryBuilder(str(path))
    seen: list[tuple[float, str, tuple[str, ...]]] = []
    for id, time, text in _files(path, builder):
        hosts = tuple(dict.fromkeys(text.split()))
        if not hosts:
            builder.leave_out(WITHOUT_NODES, id)
            continue
        seen.append((time, id, hosts))
    seen.sort()
    last = seen[-1][0] if seen else 0.0
    ends = ends_of(seen, last)
    for (time, id, hosts), end in zip(seen, ends, strict=True):
        if time == last:
            builder.leave_out("jobs first seen when the record ended (their length is unknown)", id)
            continue
        builder.add(id, time, end, hosts, unix=True)
    builder.remark(REMARK)
    builder.remark(COARSE)
    return builder.build()


def ends_of(seen: list[tuple[float, str, tuple[str, ...]]], last: float) -> list[float]:
    """The end of each job of `seen` (time, id, nodes; sorted): when the first of its nodes is next
    seen in a later job, or else `last`."""
    next_seen: dict[str, float] = {}
    later: dict[str, float] = {}  # the time after `next_seen`, for jobs seen at one moment
    ends = []
    for time, _, hosts in reversed(seen):
        when = [
            next_seen[h] if next_seen.get(h, time) > time else later.get(h, np.inf) for h in hosts
        ]
        ends.append(min(last, *when))
        for host in hosts:
            if next_seen.get(host) != time:
                later[host] = next_seen.get(host, np.inf)
                next_seen[host] = time
    return ends[::-1]


def _files(path: Path, builder: HistoryBuilder) -> Iterator[tuple[str, float, str]]:
    """(job id, first seen, text) of every file."""
    if path.is_dir():
        for file in sorted(path.rglob("*.txt")):
            yield file.stem, file.stat().st_mtime, file.read_text("utf-8-sig", errors="replace")
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and name.suffix == ".txt":
                    content = archive.extractfile(member)
                    assert content is not None, "it is a file"
                    yield (
                        name.stem,
                        float(member.mtime),
                        content.read().decode("utf-8-sig", errors="replace"),
                    )
    except (tarfile.ReadError, EOFError, zlib.error) as error:
        builder.leave_out("truncated archives (the jobs before the end are used)", str(error))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", file=path) from error
