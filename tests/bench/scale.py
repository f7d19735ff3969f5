"""The growth of time and memory with the fabric: full three-level trees of larger switches."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal
from tests.bench.timing import Times, repeat

HALVES = (8, 12, 16, 18, 24, 32)
"""Half the ports of a switch."""
ENGINES = ("sar", "sar-plus")
SECONDS = {("sar", 65_536): 4.0, ("sar-plus", 27_648): 3.0, ("sar-plus", 65_536): 15.0}
"""Goals by engine and number of hosts."""
MULTIPLE, GROWTH = 2.5, 1.5
"""Goals of sar-plus: seconds as a multiple of sar's from 27,648 hosts on, and the exponent."""
LIDS = 49_151
"""Unicast LIDs of a subnet."""


def spec_of(half: int) -> str:
    """The largest full three-level tree of switches with 2 x `half` ports."""
    return f"xgft:3;{half},{half},{2 * half};1,{half},{half}"


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """Trees of 1,024 up to 65,536 hosts; without `full`, up to 11,664."""
    table = Table(
        "Growth with the fabric",
        (
            "hosts",
            "switches",
            "engine",
            "seconds",
            "peak memory",
            "of that tables",
            "fabric, s",
        ),
        "Full trees of three levels, job mix `mix:1`, a process of its own for each: median (least "
        "… most) of whole calls after a first one; `sar-plus` keeps its template between them. "
        "Peak memory after the first call, interpreter and libraries included. `fabric`: "
        "generating it.",
    )
    found = measured(full, kept)
    for row in found:
        times = Times(row["seconds"])
        table.add(
            f"{row['hosts']:,}",
            f"{row['switches']:,}",
            row["engine"],
            times.show(".2f" if times.median > 2 else ".3f"),
            f"{row['peak_mb']:,.0f} MB",
            f"{row['tables_mb']:,.0f} MB",
            f"{row['fabric_seconds']:.1f}",
        )
    for engine in ENGINES:
        rows = [row for row in found if row["engine"] == engine]
        table.goals.append(f"{engine}: seconds grow as {_laws(rows)}")
    table.goals += [*_goals(found), _limits()]
    yield table


def measured(full: bool, kept: StoredResults) -> list[dict[str, Any]]:
    """The output of `main` for each size and engine."""
    return [
        kept(f"scale {half} {engine}", lambda h=half, e=engine: _child(h, e))
        for half in (HALVES if full else HALVES[:4])
        for engine in ENGINES
    ]


def _goals(rows: list[dict[str, Any]]) -> Iterator[str]:
    seconds = {(row["engine"], row["hosts"]): Times(row["seconds"]).median for row in rows}
    for (engine, hosts), limit in SECONDS.items():
        if (engine, hosts) in seconds:
            yield goal(f"{engine}, {hosts:,} hosts", seconds[engine, hosts], limit, "s")
            if engine == "sar-plus":
                multiple = seconds[engine, hosts] / seconds["sar", hosts]
                yield goal(f"sar-plus / sar, {hosts:,} hosts", multiple, MULTIPLE, "x")
    plus = {hosts: found for (engine, hosts), found in seconds.items() if engine == "sar-plus"}
    yield goal("sar-plus, exponent of hosts", exponent([*plus], [*plus.values()]), GROWTH, "")


def exponent(x: list[float], y: list[float]) -> float:
    """The exponent of the power law with the best fit."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _laws(rows: list[dict[str, Any]]) -> str:
    seconds = [Times(row["seconds"]).median for row in rows]
    hosts = exponent([row["hosts"] for row in rows], seconds)
    return f"hosts^{hosts:.2f} (fitted over {len(rows)} sizes)"


def _limits() -> str:
    hosts, switches = 2 * 32**3, 5 * 32**2
    return (
        f"The limit above: a subnet has {LIDS:,} unicast LIDs, one for each HCA port and switch, "
        f"so {hosts:,} hosts with {switches:,} switches are already {hosts + switches - LIDS:,} "
        "too many for one subnet and would be several; and tables take a byte for each pair of a "
        f"destination and a switch, {(hosts + switches) * switches / 2**20:.0f} MB there."
    )


def _child(half: int, engine: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.scale", str(half), engine]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(half: int, engine_name: str) -> None:
    """Measures one engine at one size; prints JSON."""
    from sar_agent.fabric.spec import load_fabric
    from sar_agent.jobs.synthetic import synthetic_mix
    from sar_agent.routing import Options, load_engine
    from tests.bench.machine import peak_mb

    times = Times()
    with times.one():
        fabric = load_fabric(spec_of(half))
    mix, engine, options = synthetic_mix(fabric, 1), load_engine(engine_name), Options()
    with times.one():
        size = engine.route(fabric, mix, options).egress.size
    peak = peak_mb()
    runs = max(1, min(7, int(20 / times[1])))  # a minute at most
    found = {
        "engine": engine_name,
        "hosts": fabric.terminals,
        "switches": fabric.switches,
        "seconds": repeat(lambda: engine.route(fabric, mix, options), runs),
        "fabric_seconds": times[0],
        "peak_mb": peak,
        "tables_mb": size / 2**20,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
