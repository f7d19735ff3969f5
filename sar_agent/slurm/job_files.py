"""A file that says which jobs run, in any of the forms a site may have at hand."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.jobs.jobmap import parse_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.squeue_text import FORMAT, parse_squeue_pipe
from sar_agent.slurm.states import RUNNING_STATES


def read_jobs_file(
    path: str | Path, states: Collection[str] = RUNNING_STATES
) -> tuple[JobRecord, ...]:
    """The running jobs of `path`: JSON of squeue or slurmrestd, squeue's pipe text or a
    job-to-terminal map, each told by its content; gzip is undone.

    An empty file is no jobs. Raises InputError with file and, where there is one, line.
    """
    path = Path(path)
    text = _read(path)
    if text.lstrip().startswith(("{", "[")):
        return parse_squeue_json(text, path, states)
    first = next((line for line in map(str.strip, text.splitlines()) if line), "")
    if "|" in first:
        return parse_squeue_pipe(text, path, states)
    if first.startswith("JOBID"):
        raise InputError(
            "this is squeue's default table, which cuts columns short",
            file=path,
            line=1,
            remedy=f"save it with: squeue -h -o '{FORMAT}', or squeue --json",
        )
    return parse_jobmap(text, path)


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"broken gzip file ({error})", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from error
    if b"\0" in data:
        raise InputError("a binary file, not a list of jobs", file=path)
    # A comment may hold any bytes; names and numbers are ASCII and are checked one by one.
    return data.decode("utf-8", errors="replace")
