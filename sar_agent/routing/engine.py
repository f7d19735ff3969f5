"""The protocol every engine speaks and the registry a site can add its own to.

Engines are found through the entry-point group `sar_agent.engines`; an engine that cannot serve a
fabric raises `Unserved` with one sentence and never guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from sar_agent.config.engine import Options
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.routes import Routes

__all__ = ["Engine", "Options", "PreviousRoutes", "Rerouting", "engine_names", "load_engine"]
GROUP = "sar_agent.engines"


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
