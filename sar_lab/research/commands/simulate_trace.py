"""`sar-lab simulate-trace`: how long the programs of a trace take on given routes.

The routes may be tables, routes by source, tables with routing keys, or those that an adaptive
router chooses while the programs run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, PartitionsOption, print_json
from sar_agent.errors import InputError
from sar_lab.commands.route_sources import EnginesOption, RoutesOption, RouteSources

if TYPE_CHECKING:
    from sar_agent.routing import Routes
    from sar_lab.fluid.path_routes import PathRoutes
    from sar_lab.research.trace.adaptive import AdaptiveRouting
    from sar_lab.research.trace.play_trace import KeySource

KEY_KINDS = ("ark", "nrk", "ark-printed", "ark-printed-drawn", "nrk-printed", "nrk-printed-links")


@with_host_options
def simulate_trace(
    trace: Annotated[
        Path, typer.Option("--trace", help="the programs; `make-trace` writes well-known ones")
    ],
    fabric: FabricOption,
    jobs: Annotated[
        str | None,
        typer.Option("--jobs", help="hosts of the programs: each runs on the job of the same name"),
    ] = None,
    placement: Annotated[
        Literal["random", "linear"] | None,
        typer.Option(
            "--place", help="without --jobs: how to place the ranks on hosts (default: random)"
        ),
    ] = None,
    engine: EnginesOption = None,
    routes: RoutesOption = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            help="KEY=OFFSET or JOB/KEY=OFFSET: the LID offset of a routing key that the tables "
            "hold; may be repeated",
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            help="ark or nrk: also simulate with a routing key for each request, computed by this "
            "method; may be repeated",
        ),
    ] = None,
    request_time: Annotated[
        str | None,
        typer.Option(
            "--request-time",
            help="with --key or --keys: how long a program waits for a key (default: 0us)",
        ),
    ] = None,
    barrier_time: Annotated[
        str | None,
        typer.Option(
            "--barrier-time",
            help="how long a round of the barrier before each phase takes; R ranks need log2(R) "
            "rounds (default: 0us)",
        ),
    ] = None,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive", help="also simulate an adaptive router similar to Conga (XGFTs only)"
        ),
    ] = False,
    flowlet: Annotated[
        str | None,
        typer.Option(
            "--flowlet", help="with --adaptive: bytes that stay on one path (default: 64KB)"
        ),
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            "--feedback",
            help="with --adaptive: interval at which loads are reported (default: 20us)",
        ),
    ] = None,
    load_levels: Annotated[
        int | None,
        typer.Option(
            "--load-levels", min=1, help="with --adaptive: number of load levels (default: 8)"
        ),
    ] = None,
    partitions: PartitionsOption = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="seed of the placement and of random choices")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Simulate how long the programs of a trace take on given routes."""
    from rich.console import Console

    from sar_agent.routing import Routes
    from sar_agent.routing.keys import key_tree
    from sar_lab.research.trace.parse import read_trace
    from sar_lab.research.trace.phase_keys import phase_keys
    from sar_lab.research.trace.play_trace import play_trace
    from sar_lab.research.trace.program_trace import with_drawn_times
    from sar_lab.research.trace.rank_placement import place_jobs, place_ranks
    from sar_lab.research.trace.slowdown_table import summary, trace_table

    programs = with_drawn_times(read_trace(trace), seed)
    if unknown := [kind for kind in keys or () if kind not in KEY_KINDS]:
        raise InputError(
            f"unknown method {unknown[0]!r} of --keys", remedy=f"one of {', '.join(KEY_KINDS)}"
        )
    if jobs and placement:
        raise InputError("--jobs and --place both place the ranks", remedy="leave one of them out")
    if request_time is not None and not (key or keys):
        raise InputError("--request-time is for routing keys", remedy="add --key or --keys")
    request_seconds = _time(request_time or "0us", "--request-time")
    round_seconds = _time(barrier_time or "0us", "--barrier-time")
    router = _adaptive(adaptive, flowlet, feedback, load_levels, seed)
    sources = RouteSources(fabric, jobs, engine or [], routes or [], partitions, seed)
    if router is None:
        sources.require_any(", or --adaptive")
    network, mix, tables = sources.tables_or_paths()
    candidates: dict[str, Routes | PathRoutes | AdaptiveRouting] = {**tables}
    if router:
        candidates["adaptive (Conga-like)"] = router
    ranks = (
        place_jobs(network, programs, mix)
        if jobs
        else place_ranks(network, programs, placement or "random", seed)
    )
    if key and not any(isinstance(table, Routes) for table in tables.values()):
        raise InputError("--key needs tables that hold the keys", remedy="add --routes DIR")
    results: list[dict[str, Any]] = []

    def play(
        name: str, candidate: Routes | PathRoutes | AdaptiveRouting, held: KeySource | None
    ) -> None:
        seconds = {"request_seconds": request_seconds, "round_seconds": round_seconds}
        times = play_trace(network, candidate, programs, ranks, keys=held, **seconds)
        results.append({"engine": name, **summary(times)})

    for name, candidate in candidates.items():
        play(name, candidate, _keys(key or [], candidate))
    for kind in keys or ():
        base = next((table for table in tables.values() if isinstance(table, Routes)), None)
        if base is None:
            raise InputError(
                "--keys needs tables for the traffic without a key", remedy="add --engine dmodk"
            )
        play(kind, base, phase_keys(key_tree(network), kind))
    if as_json:
        print_json({"trace": str(trace), "jobs": len(ranks), "results": results})
    else:
        Console(highlight=False).print(trace_table(results))


def _keys(texts: list[str], routes: Routes | PathRoutes | AdaptiveRouting) -> KeySource | None:
    from sar_agent.routing import Routes
    from sar_lab.research.trace.play_trace import by_offset

    offset = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal():
            raise InputError(
                f"--key {text!r} has no LID offset", remedy="write --key +x=2 or --key 7/+x=2"
            )
        offset[name] = int(number)
    return by_offset(routes, offset) if offset and isinstance(routes, Routes) else None


def _adaptive(
    adaptive: bool, flowlet: str | None, feedback: str | None, load_levels: int | None, seed: int
) -> AdaptiveRouting | None:
    given = {"--flowlet": flowlet, "--feedback": feedback, "--load-levels": load_levels}
    if not adaptive:
        if unused := [option for option, value in given.items() if value is not None]:
            raise InputError(f"{unused[0]} is for the adaptive router", remedy="add --adaptive")
        return None
    from sar_lab.research.trace.adaptive import AdaptiveRouting
    from sar_lab.research.trace.units import size_of

    flowlet_bytes = size_of(flowlet or "64KB")
    if flowlet_bytes is None:
        raise InputError(f"--flowlet {flowlet!r} is not a size", remedy="write, for example, 64KB")
    interval = _time(feedback or "20us", "--feedback")
    if not interval:
        raise InputError("--feedback must be longer than 0", remedy="write, for example, 20us")
    return AdaptiveRouting(flowlet_bytes, interval, load_levels or 8, seed)


def _time(text: str, option: str) -> float:
    from sar_lab.research.trace.units import time_of

    seconds = time_of(text)
    if seconds is None:
        raise InputError(f"{option} {text!r} is not a time", remedy="write, for example, 20us")
    return seconds
