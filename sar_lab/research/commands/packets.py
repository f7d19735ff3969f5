"""`sar-lab packets`: how long the jobs' all-to-alls take as packets, where buffers are finite."""

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
def packets(
    fabric: FabricOption,
    jobs: JobsOption,
    engine: EnginesOption = None,
    routes: RoutesOption = None,
    pattern: Annotated[
        str, typer.Option("--pattern", help="alltoall, shift or shift-free, as for simulate-time")
    ] = "alltoall",
    size: Annotated[int, typer.Option("--bytes", min=1, help="bytes of each message")] = 64 * 1024,
    buffers: Annotated[
        int, typer.Option("--buffers", min=1, help="segments of 1 KB that fit behind a link")
    ] = 8,
    partitions: PartitionsOption = None,
    seed: Annotated[int, engine_option("seed")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Simulate the all-to-alls of the jobs as packets with finite buffers.

    Times are multiples of what the hosts' own links need.
    """
    import numpy as np

    from sar_lab.fluid import PATTERNS
    from sar_lab.fluid.flow_paths import routed_links
    from sar_lab.fluid.flow_steps import job_ends
    from sar_lab.research.packets import PacketModel, packet_times

    if pattern not in PATTERNS:
        raise InputError(f"unknown pattern {pattern!r}", remedy=f"one of {', '.join(PATTERNS)}")
    sources = RouteSources(fabric, jobs, engine or [], routes or [], partitions, seed)
    sources.require_any()
    network, mix, tables = sources.tables()
    if not mix.jobs:
        raise InputError(f"no job of {jobs} spans two leaf switches", remedy="give other jobs")
    flows = PATTERNS[pattern](network, mix)
    gigabits = size * 8e-9
    flows = flows._replace(size=np.full(len(flows.size), gigabits))
    slowest = np.array([network.terminal_rate[job.terminals].min() for job in mix.jobs])
    bare = (np.diff(mix.offset) - 1) * gigabits / slowest
    results = []
    for name, table in tables.items():
        run = packet_times(
            network,
            routed_links(network, table, flows),
            flows,
            PacketModel(buffer_segments=buffers),
        )
        times = mix.largest(job_ends(flows, run.end, len(mix.jobs)) / bare)
        results.append(
            {
                "engine": name,
                "time_mean": float(times.mean()),
                "time_worst": float(times.max()),
                "packet_hops": run.hops,
                "jobs_detail": [
                    {"job": job.id, "time": float(time)}
                    for job, time in zip(mix.whole_jobs, times, strict=True)
                ],
            }
        )
    if as_json:
        print_json({"pattern": pattern, "bytes": size, "buffers": buffers, "results": results})
        return
    typer.echo(
        f"{pattern} of {size:,} bytes a message in {mix.words('multi-switch job')} at once; "
        "1.00 = as fast as the hosts' links"
    )
    for each in results:
        typer.echo(
            f"{each['engine']}: mean {each['time_mean']:.2f}, worst {each['time_worst']:.2f}"
        )
