"""`sar-lab simulate-time`: how long the jobs' all-to-alls take on given routes."""

from __future__ import annotations

from typing import Annotated

import typer

from sar_agent.commands.engine_options import engine_option
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import (
    FabricOption,
    JobsOption,
    JsonOption,
    PartitionsOption,
    print_json,
)
from sar_agent.errors import InputError
from sar_lab.commands.route_sources import EnginesOption, RoutesOption, RouteSources


@with_host_options
def simulate_time(
    fabric: FabricOption,
    jobs: JobsOption,
    engine: EnginesOption = None,
    routes: RoutesOption = None,
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            help="alltoall (all messages at once), shift (phases with barriers) or shift-free "
            "(phases without)",
        ),
    ] = "alltoall",
    partitions: PartitionsOption = None,
    seed: Annotated[int, engine_option("seed")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Simulate how long the all-to-alls of the jobs take on given routes."""
    from rich.console import Console

    from sar_lab.fluid import PATTERNS, job_times
    from sar_lab.fluid.times_table import times_table

    if pattern not in PATTERNS:
        raise InputError(f"unknown pattern {pattern!r}", remedy=f"one of {', '.join(PATTERNS)}")
    sources = RouteSources(fabric, jobs, engine or [], routes or [], partitions, seed)
    sources.require_any()
    network, mix, tables = sources.tables()
    if not mix.jobs:
        raise InputError(f"no job of {jobs} spans two leaf switches", remedy="give other jobs")
    times = {
        name: job_times(network, mix, table, PATTERNS[pattern]) for name, table in tables.items()
    }
    if as_json:
        results = [{"engine": name, **each.json()} for name, each in times.items()]
        print_json({"pattern": pattern, "jobs": len(mix.whole_jobs), "results": results})
        return
    typer.echo(
        f"{pattern} in {mix.words('multi-switch job')} at once on {network.terminals} "
        "terminals; 1.00 = as fast as without contention"
    )
    Console(highlight=False).print(times_table(times))
