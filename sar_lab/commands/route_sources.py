"""Options that name the routes to simulate, and the routes themselves.

Routes come from engines (`--engine`) and from folders or dumps (`--routes`); both may be repeated,
and each set of routes is reported under its engine or its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.inputs import read_fabric, read_mix, read_partitions, read_routes
from sar_agent.errors import InputError

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.jobs import JobMix
    from sar_agent.routing import Routes
    from sar_lab.fluid.path_routes import PathRoutes

EnginesOption = Annotated[
    list[str] | None,
    typer.Option("--engine", help="compute the routes with this engine; may be repeated"),
]
RoutesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--routes",
        help="read the routes from this folder (of `route --out`) or opensm-lfts.dump; may be "
        "repeated",
    ),
]


@dataclass(frozen=True)
class RouteSources:
    """The values of these options."""

    fabric: str
    jobs: str | None
    engines: list[str]
    routes: list[Path]
    partitions: Path | None
    seed: int

    def require_any(self, alternative: str = "") -> None:
        """Raises `InputError` if no routes are named."""
        if not (self.engines or self.routes):
            raise InputError(
                "no routes to simulate", remedy=f"give --engine E or --routes DIR{alternative}"
            )

    def tables(self) -> tuple[Fabric, JobMix, dict[str, Routes]]:
        """The routes as tables, by name. Raises `Unserved` for an engine that routes by source."""
        from sar_agent.routing import Routes

        fabric, mix, found = self._read(by_source=False)
        return fabric, mix, {name: each for name, each in found.items() if isinstance(each, Routes)}

    def tables_or_paths(self) -> tuple[Fabric, JobMix, dict[str, Routes | PathRoutes]]:
        """The routes, by name: a route for each pair where the engine routes by source, else
        tables."""
        return self._read(by_source=True)

    def _read(self, *, by_source: bool) -> tuple[Fabric, JobMix, dict[str, Routes | PathRoutes]]:
        from sar_agent.jobs import JobMix
        from sar_agent.routing import Options, load_engine
        from sar_agent.routing.lanes import routed
        from sar_lab.fluid.path_routes import has_paths

        engines = [load_engine(name) for name in self.engines]
        fabric = read_fabric(self.fabric)
        mix = read_mix(self.jobs, fabric) if self.jobs else JobMix.of([])
        partitions = read_partitions(self.partitions, fabric, mix)
        options = Options(seed=self.seed, partitions=partitions, max_lanes=8)
        found: dict[str, Routes | PathRoutes] = {}
        for engine in engines:
            if by_source and has_paths(engine):
                found[engine.name] = engine.paths(fabric, mix, options)
            else:
                found[engine.name] = routed(engine, fabric, mix, options)
        return fabric, mix, found | {str(path): read_routes(path, fabric) for path in self.routes}
