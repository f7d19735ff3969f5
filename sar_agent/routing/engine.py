"""The protocol of routing engines, and the registry to which a site can add its own.

Engines are found through the entry-point group `sar_agent.engines`. An engine that cannot serve a
fabric raises `Unserved` with one sentence and never guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

from sar_agent.config.engine import Options
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.routes import Routes
from sar_agent.util.extensions import extension_names, extensions, load_extension, package_of

__all__ = [
    "Engine",
    "Options",
    "PreviousRoutes",
    "Rerouting",
    "engine_names",
    "load_engine",
]

GROUP = "sar_agent.engines"
_FOR_SITES = ("sar-plus", "sar", "ftree", "dmodc")
"""The others of ours are for special fabrics and for comparison."""


@dataclass(frozen=True)
class PreviousRoutes:
    """Routes, with the fabric and the jobs that they were made for."""

    fabric: Fabric
    mix: JobMix
    routes: Routes


class Engine(Protocol):
    """Computes routes. `name` is what users type, `summary` what `sar-agent engines` prints.

    Two more attributes may be there; an engine without one counts as False. `knows_jobs`: its
    routes depend on the jobs. `by_source`: its routes depend on the source, too, as those of a
    `SourceRouted` engine.
    """

    name: str
    summary: str

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes to every terminal and every switch. Raises `Unserved`."""


@runtime_checkable
class Rerouting(Engine, Protocol):
    """An engine that can also start from routes that it made before, and change little of them."""

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """As `route`. `before.routes` are this engine's and passed the check."""


class SourceRouted(Protocol):
    """An engine with a route of its own for each pair of terminals."""

    name: str
    by_source: bool

    def describe(self, fabric: Fabric, mix: JobMix, options: Options) -> tuple[dict[str, Any], str]:
        """What `route` reports of them: as a JSON object, and as a sentence."""

    def write_offsets(self, path: Path, fabric: Fabric, mix: JobMix, options: Options) -> None:
        """Writes which LID offset a host has to send to, where that depends on the host alone."""


def knows_jobs(engine: Engine) -> bool:
    """Whether the engine's routes depend on the jobs."""
    return bool(getattr(engine, "knows_jobs", False))


def is_source_routed(engine: Any) -> TypeGuard[SourceRouted]:
    """Whether the engine's routes depend on the source, too."""
    return bool(getattr(engine, "by_source", False))


def engine_names() -> list[str]:
    """The names of all registered engines, sorted."""
    return list(extension_names(GROUP))


def site_engines() -> tuple[str, ...]:
    """Those that a site chooses from: four of ours, and all of other people's packages."""
    ours = ("sar-agent ", "sar-lab ")
    others = (p.name for p in extensions(GROUP) if not package_of(p).startswith(ours))
    return tuple(dict.fromkeys((*_FOR_SITES, *others)))


def load_engine(name: str) -> Engine:
    """A new instance of the engine called `name`. Raises `InputError`, which names those
    for sites."""
    usual = () if name in extension_names(GROUP) else site_engines()  # for a message alone
    engine: Engine = load_extension(GROUP, name, "engine", usual)()
    return engine
