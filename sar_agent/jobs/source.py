"""Sources of jobs: what one is, and the registry from which the settings name one.

A source is registered in the entry-point group `sar_agent.job_sources`; Slurm's are in `slurm/`,
others in packages of their own. All give the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential

from sar_agent.jobs.record import JobRecord
from sar_agent.util.extensions import extension_names, load_extension

GROUP = "sar_agent.job_sources"


class PollFailed(Exception):
    """A poll failed in a way that may pass; the text says how."""


def retrying(deadline: float) -> Retrying:
    """Repeats a call that raises `PollFailed`, for `deadline` seconds."""
    return Retrying(
        stop=stop_before_delay(deadline),
        wait=wait_exponential(0.2, max=2.0),
        retry=retry_if_exception_type(PollFailed),
        reraise=True,
    )


@dataclass(frozen=True)
class Poll:
    """The result of one poll. `skipped` counts entries that were not jobs; `first_skipped` says
    what was wrong with the first of them, "" if there was none.
    """

    records: tuple[JobRecord, ...]
    skipped: int = 0
    first_skipped: str = ""


class JobSource(Protocol):
    """A queue that can be read again and again."""

    def poll(self) -> Poll:
        """The running jobs now. Raises Unavailable, in one sentence, within its deadline."""
        ...


class SourceSettings(Protocol):
    """The settings that any source may read. A source from another package takes settings of its
    own from a file or from its environment."""

    @property
    def source(self) -> str:
        """The registered name."""

    @property
    def deadline_seconds(self) -> float:
        """The longest time that a poll may take."""


def source_names() -> tuple[str, ...]:
    """The names of all registered sources, sorted."""
    return extension_names(GROUP)


def job_source(settings: SourceSettings) -> JobSource:
    """The source that `settings.source` names.

    An entry point of the group is a function or class that takes the settings. Raises `InputError`
    where the name is not registered, its package cannot be imported, or the source refuses the
    settings (pyslurm is not installed).
    """
    source: JobSource = load_extension(GROUP, settings.source, "job source")(settings)
    return source
