"""The fabric that `simulate` is asked about, and routes on it by the name they are shown with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.commands.inputs import read_fabric, read_mix, read_partitions, read_routes
from sar_agent.errors import InputError

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.jobs import JobMix
    from sar_agent.routing import Routes
    from sar_agent.routing.path_routes import PathRoutes


@dataclass(frozen=True)
class Source:
    """What the options say."""

    fabric: str
    jobs: str | None
    engines: list[str]
    routes: list[Path]
    partitions: Path | None
    seed: int


def tables_of(source: Source) -> tuple[Fabric, JobMix, dict[str, Routes]]:
    """One table for everybody: engines that route by source raise `Unserved`."""
    from sar_agent.routing import Routes

    fabric, mix, found = _found(source, by_source=False)
    return fabric, mix, {name: each for name, each in found.items() if isinstance(each, Routes)}


def pairs_of(source: Source) -> tuple[Fabric, JobMix, dict[str, Routes | PathRoutes]]:
    """A route for each pair, where an engine has that."""
    return _found(source, by_source=True)


def _found(
    source: Source, *, by_source: bool
) -> tuple[Fabric, JobMix, dict[str, Routes | PathRoutes]]:
    from sar_agent.jobs import JobMix
    from sar_agent.routing import Options, load_engine
    from sar_agent.routing.engine import is_source_routed
    from sar_agent.routing.lanes import routed

    engines = [load_engine(name) for name in source.engines]
    fabric = read_fabric(source.fabric)
    mix = read_mix(source.jobs, fabric) if source.jobs else JobMix.of([])
    partitions = read_partitions(source.partitions, fabric, mix)
    options = Options(seed=source.seed, partitions=partitions)
    found: dict[str, Routes | PathRoutes] = {}
    for engine in engines:
        if by_source and is_source_routed(engine):
            found[engine.name] = engine.paths(fabric, mix, options)
        else:
            found[engine.name] = routed(engine, fabric, mix, options)
    return fabric, mix, found | {str(path): read_routes(path, fabric) for path in source.routes}


def require_some(source: Source, more: str = "") -> None:
    """Raises `InputError` where no routes are named."""
    if not (source.engines or source.routes):
        raise InputError("nothing to simulate", remedy=f"give --engine E or --routes DIR{more}")
