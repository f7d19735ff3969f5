"""Sources of jobs: what one is, and the registry from which the settings name one.

A source is registered in the entry-point group `sar_agent.job_sources`; Slurm's are in `slurm/`,
others in packages of their own. All give the same records.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.record import PENDING, JobRecord, merge_components
from sar_agent.util.extensions import extension_names, load_extension

if TYPE_CHECKING:
    from tenacity import Retrying

log = logging.getLogger(__name__)
GROUP = "sar_agent.job_sources"


class PollFailed(Exception):
    """A poll failed in a way that may pass; the text says how."""


def retrying(deadline: float) -> Retrying:
    """Repeats a call that raises `PollFailed`, for `deadline` seconds."""
    from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential

    return Retrying(
        stop=stop_before_delay(deadline),
        wait=wait_exponential(0.2, max=2.0),
        retry=retry_if_exception_type(PollFailed),
        reraise=True,
    )


@dataclass(frozen=True)
class Poll:
    """The result of one poll. `skipped` counts entries that were not jobs; `first_skipped` says
    what was wrong with the first of them, "" if there was none. `planned` are pending jobs with the
    nodes that they will get; empty where the source does not tell. `at`: when the queue was like
    that, Unix seconds; 0.0 is now.
    """

    records: tuple[JobRecord, ...]
    skipped: int = 0
    first_skipped: str = ""
    planned: tuple[JobRecord, ...] = ()
    at: float = 0.0


def jobs_of_file(
    records: Iterable[JobRecord], bad: Sequence[InputError], entries: int
) -> tuple[JobRecord, ...]:
    """The jobs of a file of so many entries, of which `bad` could not be read, which is logged.
    Raises the first of these where they are half of the entries or more: then this is no list of
    jobs."""
    if bad and 2 * len(bad) >= entries:
        raise bad[0]
    if bad:
        skipped = "1 entry was" if len(bad) == 1 else f"{len(bad)} entries were"
        log.warning("%s passed over, the first: %s", skipped, bad[0])
    return merge_components(records)


def kept_of_queue(
    records: Iterable[JobRecord], skipped: Sequence[str], entries: int, printed: str
) -> Poll:
    """The jobs of a queue of so many entries; `skipped` says what was wrong with others. Raises
    `Unavailable`, which begins with what was `printed`, where these are more than half: taken for
    an empty queue, it would discard the routes of all jobs."""
    first = skipped[0] if skipped else ""
    if 2 * len(skipped) > entries:
        raise Unavailable(printed.format(f"{len(skipped)} of {entries}") + f", the first: {first}")
    running, planned = list[JobRecord](), list[JobRecord]()
    for record in records:
        (planned if record.state == PENDING else running).append(record)
    return Poll(merge_components(running), len(skipped), first, merge_components(planned))


class JobSource(Protocol):
    """A queue that can be read again and again."""

    def poll(self) -> Poll:
        """The running jobs now. Raises Unavailable, in one sentence, within its deadline."""


@runtime_checkable
class TellsNodes(Protocol):
    """A source that also knows nodes. Where a source shows no job any more after a poll with jobs,
    that is believed at once if none of their nodes has one; from any other source after
    `observe_site.EMPTY_SECONDS`."""

    def allocated(self, hosts: Collection[str]) -> frozenset[str]:
        """Those of `hosts` that have a job now. Raises Unavailable, in one sentence, within its
        deadline, where that is not known of each of them."""


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
