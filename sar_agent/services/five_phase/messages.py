"""The messages and actions of a five-phase update; the model and the C code use the same names.

The COORDINATOR is the agent, the SM is OpenSM with the plugin, a SUBSCRIBER is `libsar_migrate` in
a process of a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """The phase of a run. UNPATH: all subscribers move to offset 1. INSTALL: the tables of offset 0
    change. REPATH: all move back to offset 0. IDLE: there is no run."""

    IDLE = "idle"
    UNPATH = "unpath"
    INSTALL = "install"
    REPATH = "repath"


@dataclass(frozen=True)
class Subscribe:
    """A new subscriber, or the renewal of a lease. `uid` is the sender; None for a trusted user."""

    subscriber: str
    job: str
    uid: int | None
    offset: int
    """LID offset in use now."""
    update: int
    """The last update that the subscriber has seen."""


@dataclass(frozen=True)
class Acknowledge:
    """All connections of the subscriber are on the offset that `phase` requires."""

    subscriber: str
    phase: Phase
    update: int


@dataclass(frozen=True)
class Unsubscribe:
    """The subscriber has no connections any more."""

    subscriber: str


@dataclass(frozen=True)
class BeginUpdate:
    """New tables of offset 0 are to be installed. `at` is in ns since 1970, so that the numbers of
    updates rise even if the last one was lost."""

    generation: int
    at: int


@dataclass(frozen=True)
class RunningJobs:
    """The running jobs and their owners (None if unknown), as read from the queue; reading began at
    `at`. An empty queue counts only if the next reading is empty, too."""

    jobs: Mapping[str, int | None]
    at: float


@dataclass(frozen=True)
class TablesInstalled:
    """The tables were read back: all are old, or all are new (or those of one intermediate stage).
    `why` says why they are not the new ones, or is empty. `moved`: they are not the old ones."""

    why: str = ""
    moved: bool = True


@dataclass(frozen=True)
class GiveUp:
    """The run must not continue; only before the install."""

    why: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Message = (
    Subscribe
    | Acknowledge
    | Unsubscribe
    | BeginUpdate
    | RunningJobs
    | TablesInstalled
    | GiveUp
    | Tick
)


@dataclass(frozen=True)
class RaiseNotice:
    """The SM must raise trap 68 (UNPATH) or 69 (REPATH)."""

    phase: Phase
    update: int
    generation: int


@dataclass(frozen=True)
class InstallTables:
    """The new tables must be installed: no subscriber uses offset 0."""


@dataclass(frozen=True)
class AskQueue:
    """The queue must be read: a subscriber is late, and its job may have ended."""


@dataclass(frozen=True)
class RunEnded:
    """The run has ended. `why` says why it was given up; empty if the tables were installed."""

    why: str
    late: tuple[str, ...] = ()
    """Subscribers that have not returned to offset 0 yet; their next message tells them."""


Action = RaiseNotice | InstallTables | AskQueue | RunEnded
