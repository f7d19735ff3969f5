"""What the parties of a five-phase update say; the same names are in the model and in C.

The COORDINATOR is the agent, the SM is OpenSM with our plugin, a SUBSCRIBER is `libsar_migrate` in
a process of a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where a run is, as subscribers are told. UNPATH: to offset 1, all of you. INSTALL: tables of
    offset 0 change. REPATH: back to offset 0. IDLE: there is no run."""

    IDLE = "idle"
    UNPATH = "unpath"
    INSTALL = "install"
    REPATH = "repath"


SHELTERED = frozenset({Phase.UNPATH, Phase.INSTALL})
"""Phases in which whoever asks is sent to offset 1."""


@dataclass(frozen=True)
class Subscribe:
    """A newcomer, or the renewal of a lease. `uid` is who speaks; None for who may for all."""

    subscriber: str
    job: str
    uid: int | None
    offset: int
    """In use now."""
    update: int
    """Last seen."""


@dataclass(frozen=True)
class Acknowledge:
    """All connections of the subscriber are on the offset that `phase` asks for."""

    subscriber: str
    phase: Phase
    update: int


@dataclass(frozen=True)
class Unsubscribe:
    """It has no connections any more."""

    subscriber: str


@dataclass(frozen=True)
class BeginUpdate:
    """Other tables of offset 0 are to be installed. `at` in ns since 1970, so that numbers of
    updates rise even where the last was forgotten."""

    generation: int
    at: int


@dataclass(frozen=True)
class RunningJobs:
    """Running jobs and their owners (None: not told), by a look at the queue that began at `at`. A
    look that shows no job at all is believed only when the next one shows none either."""

    jobs: Mapping[str, int | None]
    at: float


@dataclass(frozen=True)
class TablesInstalled:
    """Read back: the tables are all old, or all new (or of one stage of the new ones). `why` they
    are not the new ones, if so. `moved`: they are not the old ones."""

    why: str = ""
    moved: bool = True


@dataclass(frozen=True)
class GiveUp:
    """It must not be gone on with; only before the install."""

    why: str


@dataclass(frozen=True)
class Tick:
    """Time has gone by."""


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
    """Have the SM raise trap 68 (UNPATH) or 69 (REPATH)."""

    phase: Phase
    update: int
    generation: int


@dataclass(frozen=True)
class InstallTables:
    """Put the tables in force: nobody uses offset 0."""


@dataclass(frozen=True)
class AskQueue:
    """Look at the queue: somebody is late, and its job may be over."""


@dataclass(frozen=True)
class RunEnded:
    """The run is over. `why` it was given up; empty where the tables were installed."""

    why: str
    late: tuple[str, ...] = ()
    """Subscribers that have not come back to offset 0 yet; the door tells them when they ask."""


Action = RaiseNotice | InstallTables | AskQueue | RunEnded
