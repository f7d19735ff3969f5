"""The job source `file`: what squeue printed into a file, which somebody writes again and again.

For an agent where neither squeue nor slurmrestd can be asked: cron on another machine, a shared
folder, a push.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.source import Poll
from sar_agent.slurm.job_files import read_jobs_file
from sar_agent.slurm.settings import SlurmSettings
from sar_agent.slurm.states import RUNNING_STATES


class JobsFileSource:
    """The jobs in `path`; a file that did not change is not read again."""

    def __init__(self, path: Path, states: Collection[str] = RUNNING_STATES) -> None:
        self.path, self.states = path, frozenset(states)
        self._last: tuple[object, Poll] | None = None
        """The version of the file, and what was in it."""

    @classmethod
    def configured(cls, settings: SlurmSettings) -> JobsFileSource:
        """The job source `file`. Raises `InputError` without a file."""
        if not settings.jobs_file:
            raise InputError(
                'slurm.source = "file" needs slurm.jobs_file', remedy="name the file there"
            )
        return cls(Path(settings.jobs_file), settings.states)

    def poll(self) -> Poll:
        """The jobs in the file, of the time when it was written. Raises `Unavailable`."""
        try:
            stat = self.path.stat()
            version = stat.st_ino, stat.st_size, stat.st_mtime_ns
            if self._last is None or self._last[0] != version:
                records = read_jobs_file(self.path, self.states)
                self._last = version, Poll(records, at=stat.st_mtime)
        except OSError as error:
            raise Unavailable(
                f"{self.path} cannot be read ({error.strerror}); write squeue's output there"
            ) from error
        except InputError as error:
            raise Unavailable(str(error)) from error
        return self._last[1]
