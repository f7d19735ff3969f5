"""How seconds and memory grow with hosts: `sar`, `sar-plus`, the check, and two engines of OpenSM.

A process for each size and each of ours. The exponents are those of a straight line through the
logarithms of seconds, by hosts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from sar_agent.demand.endpoints import synthetic_mix
from tests.bench import opensm_engines
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of
from tests.bench.machine import peak_mb
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table
from tests.bench.timing import Times, repeat

FABRICS = (
    "xgft:3;6,6,12;1,6,6",
    MIDDLE,
    "xgft:3;12,12,24;1,12,12",
    LARGEST,
    "xgft:3;24,24,48;1,24,24",
    "xgft:3;36,36,36;1,18,18",
)
"""432 to 46,656 hosts; the last, slimmed, has nearly all LIDs of a subnet with its switches."""
OURS = "sar", "sar-plus", "check"
THEIRS = {"ftree": 4, "dfsssp": 3}
"""The number of sizes on which each was measured."""
LIMIT, RUNS = 300.0, 3


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """Three sizes, all six with `full`."""
    specs = FABRICS if full else FABRICS[:3]
    table = Table(
        "Growth with hosts",
        ("hosts", "switches", *OURS, "peak memory", *(f"OpenSM {name}" for name in THEIRS)),
        f"CPU seconds, the median of {RUNS} calls after a first one, under `mix:1`; *check*: the "
        "whole check of the tables of `sar`; peak memory of the process of the check, "
        f"interpreter and fabric included. OpenSM: its first routing, within {LIMIT:.0f} s, by its "
        "log. The largest tree is slimmed.",
    )
    points: dict[str, list[tuple[int, float]]] = {}
    for i, spec in enumerate(specs):
        fabric = fabric_of(spec)
        found = {what: kept(f"growth {spec} {what}", partial(_run, spec, what)) for what in OURS}
        found |= {
            what: kept(f"growth {spec} OpenSM {what}", partial(_opensm, spec, what))
            for what, sizes in THEIRS.items()
            if i < sizes
        }
        for what, (seconds, mb) in found.items():
            points.setdefault(what, []).append((fabric.terminals, seconds))
            if what in ("check", *THEIRS):
                points.setdefault(f"{what}, memory", []).append((fabric.terminals, mb))
        cells = [f"{found[w][0]:.3f}" if w in found else "" for w in OURS]
        cells += [f"{found['check'][1]:.0f} MB"]
        cells += [f"{found[w][0]:.2f}, {found[w][1]:.0f} MB" if w in found else "" for w in THEIRS]
        table.add(f"{fabric.terminals:,}", f"{fabric.switches:,}", *cells)
    table.goals += [f"{what}: hosts^{_exponent(each):.2f}" for what, each in points.items()]
    yield table


def _exponent(points: list[tuple[int, float]]) -> float:
    hosts, values = np.log(np.array(points).T)
    return float(np.polyfit(hosts, values, 1)[0])


def _run(spec: str, what: str) -> list[float]:
    command = [sys.executable, "-m", "tests.bench.growth", spec, what]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: list[float] = json.loads(done.stdout)
    return found


def _opensm(spec: str, engine: str) -> list[float]:
    """Its first routing step, and OpenSM's peak memory."""
    held = opensm_engines.tables_of_opensm(fabric_of(spec), engine, 1, LIMIT)
    return [held.seconds[0], held.peak_mb]


def main(spec: str, what: str) -> None:
    """Prints CPU seconds of a call and the peak memory in MB as JSON."""
    from sar_agent.check import check_routes
    from sar_agent.routing import Options, load_engine

    fabric = fabric_of(spec)
    mix = synthetic_mix(fabric, 1)
    engine = load_engine("sar" if what == "check" else what)
    call: Callable[[], Any] = partial(engine.route, fabric, mix, Options())
    routes = call()
    if what == "check":
        call = partial(check_routes, fabric, routes)
        call().require()
    peak, times = peak_mb(), repeat(call, RUNS)
    print(json.dumps([Times(times.cpu).median, peak]))


if __name__ == "__main__":
    main(*sys.argv[1:])
