"""`simulate --trace`: how long programs take, on tables, by source, or led by an adaptive peer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sar_agent.commands.inputs import print_json
from sar_agent.errors import InputError
from sar_lab.commands.whose_routes import Source, pairs_of, require_some

if TYPE_CHECKING:
    from sar_agent.routing import Routes
    from sar_agent.routing.path_routes import PathRoutes
    from sar_lab.fluid.adaptive import AdaptiveRouting
    from sar_lab.trace.play_trace import KeySource


@dataclass(frozen=True)
class Wanted:
    """What is played."""

    trace: Path
    place: str
    key: list[str]
    """`NAME=OFFSET`"""
    keys: list[str]
    """`ark`, `nrk`"""
    request_time: str
    peer: tuple[str, str, int] | None
    """Flowlet, feedback and levels of the adaptive peer."""


def trace(source: Source, wanted: Wanted, as_json: bool) -> None:
    """Every program of a trace, all beside each other."""
    from rich.console import Console

    from sar_agent.keys.routes import key_tree
    from sar_agent.routing import Routes
    from sar_lab.trace.parse import read_trace
    from sar_lab.trace.phase_keys import phase_keys
    from sar_lab.trace.play_trace import play_trace
    from sar_lab.trace.rank_placement import place_jobs, place_ranks
    from sar_lab.trace.slowdown_table import summary, trace_table

    programs = read_trace(wanted.trace)
    request = _time(wanted.request_time, "--request-time")
    if wrong := [how for how in wanted.keys if how not in ("ark", "nrk")]:
        raise InputError(f"no kind of routing keys is called {wrong[0]!r}", remedy="ark, nrk")
    peer = _peer(wanted.peer, source.seed)
    if not peer:
        require_some(source, ", or --adaptive")
    fabric, mix, tables = pairs_of(source)
    routes: dict[str, Routes | PathRoutes | AdaptiveRouting] = {**tables}
    if peer:
        routes["adaptive (Conga-like)"] = peer
    placement = (
        place_jobs(fabric, programs, mix)
        if source.jobs
        else place_ranks(fabric, programs, wanted.place, source.seed)
    )
    results: list[dict[str, Any]] = []
    for name, each in routes.items():
        keys = _keys(wanted.key, each)
        times = play_trace(fabric, each, programs, placement, keys=keys, request_seconds=request)
        results.append({"engine": name, **summary(times)})
    for how in wanted.keys:
        base = next((each for each in tables.values() if isinstance(each, Routes)), None)
        if base is None:
            raise InputError("keys need tables for what asks for none", remedy="add --engine dmodk")
        found = phase_keys(key_tree(fabric), shifted=how == "nrk")
        times = play_trace(fabric, base, programs, placement, keys=found, request_seconds=request)
        results.append({"engine": how, **summary(times)})
    if as_json:
        print_json({"trace": str(wanted.trace), "jobs": len(placement), "results": results})
    else:
        Console(highlight=False).print(trace_table(results))


def _keys(words: list[str], routes: Routes | PathRoutes | AdaptiveRouting) -> KeySource | None:
    from sar_agent.routing import Routes
    from sar_lab.trace.play_trace import by_offset

    offset = {}
    for word in words:
        name, _, number = word.rpartition("=")
        if not name or not number.isdecimal():
            raise InputError(f"--key {word!r}", remedy="e.g. --key +x=2 or --key 7/+x=2")
        offset[name] = int(number)
    return by_offset(routes, offset) if offset and isinstance(routes, Routes) else None


def _peer(words: tuple[str, str, int] | None, seed: int) -> AdaptiveRouting | None:
    if words is None:
        return None
    from sar_lab.fluid.adaptive import AdaptiveRouting
    from sar_lab.trace.units import size_of

    flowlet = size_of(words[0])
    if flowlet is None:
        raise InputError(f"--flowlet {words[0]!r}", remedy="e.g. 64KB")
    feedback = _time(words[1], "--feedback")
    if not feedback:
        raise InputError("--feedback of no time", remedy="e.g. 20us")
    return AdaptiveRouting(flowlet, feedback, words[2], seed)


def _time(word: str, option: str) -> float:
    from sar_lab.trace.units import time_of

    seconds = time_of(word)
    if seconds is None:
        raise InputError(f"{option} {word!r}", remedy="e.g. 20us")
    return seconds
