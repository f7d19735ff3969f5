"""`sar-agent simulate`: how long jobs' traffic takes on each engine's routes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.output import (
    FabricOption,
    JobsOption,
    JsonOption,
    print_json,
    read_fabric,
    read_mix,
    read_routes,
)


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def simulate(
        fabric: FabricOption,
        jobs: JobsOption,
        engine: Annotated[
            list[str] | None, typer.Option("--engine", help="see `sar-agent engines`; repeatable")
        ] = None,
        routes: Annotated[
            list[Path] | None,
            typer.Option(
                "--routes",
                help="folder that `route --out` wrote, or opensm-lfts.dump; repeatable",
            ),
        ] = None,
        pattern: Annotated[
            str, typer.Option("--pattern", help="alltoall (all at once), shift, shift-free")
        ] = "alltoall",
        as_json: JsonOption = False,
    ) -> None:
        """Time of each job's all-to-all, all jobs at once; 1.0 is a network without contention."""
        from rich.console import Console

        from sar_agent.errors import InputError
        from sar_agent.lab.fluid import PATTERNS, job_times
        from sar_agent.lab.fluid.table import times_table
        from sar_agent.routing import Options, load_engine
        from sar_agent.routing.lanes import routed

        if pattern not in PATTERNS:
            raise InputError(
                f"no pattern is called {pattern!r}", remedy=f"one of {', '.join(PATTERNS)}"
            )
        chosen = [load_engine(name) for name in engine or ()]
        if not chosen and not routes:
            raise InputError("nothing to simulate", remedy="give --engine E or --routes DIR")
        network = read_fabric(fabric)
        mix = read_mix(jobs, network)
        if not mix.jobs:
            raise InputError(f"no job of {jobs} spans two leaf switches", remedy="give other jobs")
        found = {each.name: routed(each, network, mix, Options()) for each in chosen}
        found |= {str(path): read_routes(path, network) for path in routes or ()}
        times = {
            name: job_times(network, mix, each, PATTERNS[pattern]) for name, each in found.items()
        }
        if as_json:
            results = [{"engine": name, **each.json()} for name, each in times.items()]
            print_json({"pattern": pattern, "jobs": len(mix.jobs), "results": results})
            return
        typer.echo(
            f"{pattern} in {len(mix.jobs)} multi-switch jobs at once on {network.terminals} "
            "terminals; 1.00 = as fast as without contention"
        )
        Console(highlight=False).print(times_table(times))
