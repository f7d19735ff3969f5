"""What a source of jobs is; `squeue`, `slurmrestd` and `pyslurm` all give the same records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential

from sar_agent.jobs.record import JobRecord


class PollFailed(Exception):
    """One try failed in a way that may pass; the text says how."""


def retrying(deadline: float) -> Retrying:
    """Calls again what raises `PollFailed`, for `deadline` seconds."""
    return Retrying(
        stop=stop_before_delay(deadline),
        wait=wait_exponential(0.2, max=2.0),
        retry=retry_if_exception_type(PollFailed),
        reraise=True,
    )


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
