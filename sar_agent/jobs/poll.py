"""What a source of jobs is; `squeue`, `slurmrestd` and `pyslurm` all give the same records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sar_agent.jobs.records import JobRecord


@dataclass(frozen=True)
class Poll:
    """What one poll found. `skipped` counts entries that were no job; `first_skipped` says
    what was wrong with the first of them ("" if none).
    """

    records: tuple[JobRecord, ...]
    skipped: int = 0
    first_skipped: str = ""


class JobSource(Protocol):
    """A queue that can be read again and again."""

    def poll(self) -> Poll:
        """The running jobs now. Raises Unavailable, in one sentence, within its deadline."""
        ...
