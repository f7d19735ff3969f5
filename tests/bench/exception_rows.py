"""The rows of `tests.bench exceptions`: fabrics, mixes, and what is measured of each.

A row is compared with engines that sites have today, in the same run: the better of `ftree` and
`dmodc`, by each number; where both refuse, `dfsssp`. Seconds and entries are an engine's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.tree_placement import hosts_by_leaf
from sar_agent.quality.bounds import bounds_of
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import with_lanes
from sar_agent.routing.template import templates_of
from tests.bench.bench_fabrics import available, fabric_of
from tests.bench.phase_times import PhaseTimes, phase_times
from tests.bench.quality import ROUNDS
from tests.bench.stored_results import StoredResults
from tests.bench.timing import Times
from tests.worlds.odd_trees import degraded

BASELINE = Path(__file__).with_name("exceptions-baseline.json")
"""sar-plus at commit fcf8f3f, before it was a template and exceptions; its tables cannot be had any
more."""

TREES = {
    "xgft:2;12,24;1,12": "two levels",
    "xgft:3;6,6,8;1,6,6": "three levels",
    "xgft:2;24,12;1,12": "two levels, 2:1",
    "xgft:2;18,16;1,6": "two levels, 3:1",
    "xgft:3;8,6,6;1,4,6": "three levels, 2:1",
    "xgft:3;9,4,8;1,3,4": "three levels, 3:1",
    "xgft:3;6,6,8;1,6,6 - 3 % of cables": "three levels, degraded",
    "xgft:2;12,24;1,12 - 2 spines": "two levels, degraded",
    "dgx-ndr": "real",
    "small-2014": "real",
    "psmn-x5": "real, irregular",
    "selene-storage": "real",
    "director-notabs": "real",
}
OTHERS = {
    "torus:4x4x4": "torus",
    "dragonfly:a=4,p=2,h=2": "Dragonfly",
    "hyperx:4x6,hosts=4": "HyperX",
}
FABRICS = TREES | OTHERS
MIXES = ("one job", "in a row", "six in a row", "mix:1,placed=tree", "mix:1", "mix:2")
SIZES = (30, 7, 50, 18, 40, 5, 64, 11, 33, 20)
"""Of jobs `in a row`, again and again while one fits; none has more than a quarter of the hosts."""
REFERENCES = ("ftree", "dmodc")
STAND_IN = "dfsssp"
"""The reference where both refuse, and one of the templates."""
NOBODY = JobMix(())


class Measured(NamedTuple):
    """One engine's tables for one row, for JSON."""

    times: PhaseTimes
    entries: int
    """Of live hosts' rows, those that differ from the template."""
    nearest: int
    """The same, from the nearest of dmodc, dfsssp without jobs and the engine's own templates, of
    which it may choose another."""
    lanes: int
    """That close no credit loop; 0 where no number of lanes does."""
    seconds: float
    """A second call of `route`, kernels loaded."""
    repeatable: bool
    """Whether the second call gave the tables of the first."""


def rows(only: str = "") -> Iterator[str]:
    """The names of fabrics on this machine that have a row with `only` in its name."""
    for name in FABRICS:
        if any(only in row_name(name, mix) for mix in MIXES):
            file = name.partition(" - ")[0]
            if any(True for _ in available([file])):
                yield name


def row_name(fabric: str, mix: str) -> str:
    """Also the key of the baseline."""
    return f"{fabric} / {mix}"


@cache
def row_fabric(name: str) -> Fabric:
    """`xgft:… - 2 spines` has switches down, `… - 3 % of cables` cables."""
    file, _, damage = name.partition(" - ")
    fabric = fabric_of(file)
    if damage.endswith("spines"):
        return fabric.with_switches_down(range(fabric.switches - int(damage[0]), fabric.switches))
    return degraded(fabric, 0.03, 1) if damage else fabric


def row_mix(fabric: Fabric, mix: str) -> JobMix:
    """The jobs of one of `MIXES`."""
    if mix.startswith("mix:"):
        return mix_of_spec(mix, fabric)
    hosts = sum(map(len, hosts_by_leaf(fabric).values()))
    if mix == "one job":
        return mix_of_spec(f"blocks:{hosts}", fabric)
    if mix == "six in a row":
        return mix_of_spec("blocks:" + ",".join(6 * [str(hosts // 6)]), fabric)
    sizes, left = list[int](), hosts
    while fitting := [size for size in SIZES if size <= min(left, hosts // 4)]:
        for size in fitting:
            if size <= left:
                sizes.append(size)
                left -= size
    return mix_of_spec("blocks:" + ",".join(map(str, sizes)), fabric)


def reference(name: str, mix_name: str, kept: StoredResults) -> dict[str, Any]:
    """`bound`, `dmodc` and so on (`PhaseTimes` of each reference that serves the fabric)."""

    def find() -> dict[str, Any]:
        fabric, mix = row_fabric(name), row_mix(row_fabric(name), mix_name)
        bounds = bounds_of(fabric, mix, rounds=ROUNDS).load.values()
        tables = {engine: oblivious(name, engine) for engine in REFERENCES}
        if not any(tables.values()):
            tables = {STAND_IN: oblivious(name, STAND_IN)}
        return {"bound": max(bounds), "jobs": len(mix.jobs), "hosts": len(mix.terminal)} | {
            "engines": {e: phase_times(fabric, mix, r) for e, r in tables.items() if r}
        }

    found: dict[str, Any] = kept(f"exceptions {name} {mix_name}", find)
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


@cache
def oblivious(name: str, engine: str) -> Routes | None:
    """The tables of an engine that ignores jobs; None where it refuses."""
    try:
        return load_engine(engine).route(row_fabric(name), NOBODY, Options())
    except Unserved:
        return None


@cache
def template(name: str) -> U8:
    """uint8[D, S]: dmodc's table, or dfsssp's without jobs where dmodc refuses or has the larger
    load while all hosts send to all: this depends on no mix."""
    dmodc, dfsssp = oblivious(name, "dmodc"), oblivious(name, STAND_IN)
    assert dfsssp is not None
    if dmodc is None or _all_pairs(name, dfsssp) < _all_pairs(name, dmodc):
        return dfsssp.egress[0]
    return dmodc.egress[0]


def _all_pairs(name: str, routes: Routes) -> float:
    fabric = row_fabric(name)
    everyone = make_job("all", np.flatnonzero(fabric.is_host_port))
    return round(float(traffic_of(fabric, JobMix((everyone,)), routes).load.max()), 9)


def differing(fabric: Fabric, one: U8, other: U8) -> int:
    """Entries of live hosts in live switches that differ."""
    live = (one != other)[: fabric.terminals][fabric.is_host_port][:, fabric.switch_up]
    return int(live.sum())


def measured(name: str, mix_name: str, engine_name: str) -> Measured:
    """An engine's tables for one row."""
    fabric, mix = row_fabric(name), row_mix(row_fabric(name), mix_name)
    engine, times = load_engine(engine_name), Times()
    first = engine.route(fabric, mix, Options())
    with times.one():
        routes = engine.route(fabric, mix, Options())
    egress = routes.egress[0]
    bases = [base.egress[0] for e in ("dmodc", STAND_IN) if (base := oblivious(name, e))]
    bases += [base.egress for base in templates_of(fabric)]
    return Measured(
        phase_times(fabric, mix, routes),
        differing(fabric, egress, template(name)),
        min(differing(fabric, egress, base) for base in bases),
        _lanes(fabric, mix, routes),
        times[0],
        first.same_tables(routes),
    )


def _lanes(fabric: Fabric, mix: JobMix, routes: Routes) -> int:
    try:
        return with_lanes(routes, fabric, mix, Options()).virtual_lanes
    except Unserved:
        return 0
