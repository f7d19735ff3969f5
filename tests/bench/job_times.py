"""Does load mean time? Simulated times of jobs on the routes of our engines and of OpenSM's."""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, engine_names, load_engine
from sar_lab.fluid import PATTERNS, job_times
from tests.bench.opensm_engines import tables_of_opensm
from tests.bench.table import Table

FABRICS = ("xgft:2;18,36;1,18", "xgft:3;12,12,12;1,12,12")
MIXES = (1, 2, 3)
OPENSM = ("minhop", "dfsssp", "ftree")
OURS = ("minhop", "dfsssp", "sar", "dmodc", "sar-plus")


def tables(full: bool) -> Iterator[Table]:
    """A table for each fabric."""
    for spec in FABRICS:
        fabric = load_fabric(spec)
        mixes = [synthetic_mix(fabric, seed) for seed in MIXES]
        table = Table(
            f"Does load mean time? {fabric.terminals:,} hosts, {fabric.switches} switches",
            (
                "routes",
                "all at once",
                "worst job",
                "predicted",
                "worst job, predicted",
                "shift phases",
                "without barriers",
            ),
            f"`{spec}`, job mixes {', '.join(f'`mix:{m}`' for m in MIXES)}, a number each: mean "
            "time of the multi-switch jobs in a max-min fair simulation, all jobs at once; 1.00 is "
            "a network without contention. Predicted: 1 / throughput, from the load alone. "
            "OpenSM's tables are those that its switches (ibsim) confirmed.",
        )
        for name, routes in _routes(fabric, mixes).items():
            table.add(name, *cells(fabric, mixes, routes))
        yield table


def _routes(fabric: Fabric, mixes: list[JobMix]) -> dict[str, list[Routes]]:
    """Engine → the routes for each mix; OpenSM's routes do not depend on the mix."""
    theirs = {engine: tables_of_opensm(fabric, engine).routes for engine in OPENSM}
    ours = {name: load_engine(name) for name in OURS if name in engine_names()}
    return {
        **{f"OpenSM {name}": [routes] * len(mixes) for name, routes in theirs.items()},
        **{
            f"sar-agent {name}": [engine.route(fabric, mix, Options()) for mix in mixes]
            for name, engine in ours.items()
        },
    }


def cells(fabric: Fabric, mixes: list[JobMix], routes: list[Routes]) -> Iterator[str]:
    found = {
        name: [
            job_times(fabric, mix, each, pattern).summary()
            for mix, each in zip(mixes, routes, strict=True)
        ]
        for name, pattern in PATTERNS.items()
    }
    for pattern, key in (
        ("alltoall", "time_mean"),
        ("alltoall", "time_worst"),
        ("alltoall", "predicted_mean"),
        ("alltoall", "predicted_worst"),
        ("shift", "time_mean"),
        ("shift-free", "time_mean"),
    ):
        yield " · ".join(f"{summary[key]:.2f}" for summary in found[pattern])
