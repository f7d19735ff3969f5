"""The protocol every engine speaks and the registry a site can add its own to.

Engines are found through the entry-point group `sar_agent.engines`; an engine that cannot serve a
fabric raises `Unserved` with one sentence and never guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal, Protocol, runtime_checkable

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partitions
from sar_agent.routing.routes import Routes

GROUP = "sar_agent.engines"


@dataclass(frozen=True)
class Options:
    """What a caller may ask of any engine."""

    seed: int = 0
    """For engines that draw; the others ignore it."""
    objective: Literal["load", "routes"] = "load"
    """What `sar-plus` makes least: the largest channel load, or the largest effective EFI."""
    lmc: int = 0
    """2**lmc LID offsets may be used, 0 … 7."""
    pattern: str = ""
    """For `colored`, `ark`, `nrk`: who sends to whom in each job, see `jobs/patterns.py`; without
    it the last two go by what each job says of itself."""
    partitions: Partitions | None = None
    """For the pftree family."""
    combine: float = 0.5
    """A of pftree-2016's Equation 2, for `pftree-combined`: 1 is -ext alone, 0 -wt alone."""
    lanes: Literal["hop", "path"] = "hop"
    """How a packet's lane is chosen where one is not enough: `hop`, by the ports it passes, which
    asks nothing of hosts, and by path where that cannot be; `path`, always by service level."""
    max_lanes: int = 8
    """Virtual lanes that routes may use, 1 … 15."""
    best_effort: bool = False
    """Where these do not suffice: the remainder on Up*/Down* paths in the last lane; else the
    fabric is not served."""
    reserve_lane: bool = True
    """With LMC above 0 one of these lanes is kept free for the routes of LID offset 1."""
    spread_lanes: bool = False
    """Use all lanes, to have less traffic in each, where fewer would do, but not one."""


@dataclass(frozen=True)
class PreviousRoutes:
    """Routes, and what they were made for."""

    fabric: Fabric
    mix: JobMix
    routes: Routes


class Engine(Protocol):
    """Computes routes. `name` is what users type, `summary` what `sar-agent engines` prints."""

    name: str
    summary: str

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every terminal and every switch; raises `Unserved`."""


@runtime_checkable
class Rerouting(Engine, Protocol):
    """An engine that can also start from routes it made, and change little."""

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """As `route`; `before.routes` are this engine's and passed the check."""


def engine_names() -> list[str]:
    """All registered names, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_engine(name: str) -> Engine:
    """The engine of that name; `InputError` lists the known ones otherwise."""
    for point in entry_points(group=GROUP, name=name):
        engine: Engine = point.load()()
        return engine
    raise InputError(f"no engine is called {name!r}", remedy=f"one of {', '.join(engine_names())}")
