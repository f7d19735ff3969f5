"""Virtual lanes: ours beside OpenSM's dfsssp, on the same fabrics in the same run.

    .venv/bin/python -m tests.bench.lanes [--limit SECONDS] [FABRIC …]

Our seconds are those of engine `dfsssp` and of its lanes with loaded kernels; each fabric has its
own process, whose peak memory is printed. OpenSM's seconds are its routing step
(`opensm_engines.py`), within the limit. `-5 %` after a spec: a twentieth of the cables between
switches is gone."""

from __future__ import annotations

import argparse
import multiprocessing
from typing import NamedTuple

import numpy as np

from sar_agent.check import check_routes
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import connected_components
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import assign_lanes
from tests.bench.bench_fabrics import available, fabric_of
from tests.bench.machine import peak_mb
from tests.bench.opensm_engines import tables_of_opensm
from tests.bench.table import Table

TREE = "xgft:3;12,12,12;1,12,12"
FABRICS = (
    "dragonfly:a=4,p=2,h=2",
    "dragonfly:a=8,p=4,h=4",
    "dragonfly:a=16,p=8,h=8",
    "torus:4x4x4",
    "torus:6x6x6",
    "torus:8x8x8",
    f"{TREE} -5 %",
    "psmn-x5",
)
LIMIT = 60.0
LESS = " -5 %"


class LaneRun(NamedTuple):
    """The measurements of one lane assignment."""

    engine: str
    lanes: int
    routing: float
    laying: float
    safe: bool
    peak_mb: float


def fabric_with(name: str) -> Fabric:
    """The fabric of a name, with cables removed where the name says so; it remains connected."""
    fabric = fabric_of(name.removesuffix(LESS))
    if name.endswith(LESS):
        cables = np.flatnonzero(np.arange(fabric.channels) < fabric.channel_reverse)
        rng = np.random.default_rng(1)
        cut = rng.choice(cables, len(cables) // 20, replace=False)
        fabric = fabric.with_links_down(cut)
        assert not connected_components(fabric).any()
    return fabric


def run_lanes(name: str) -> LaneRun:
    """Assigns lanes twice; the second run has loaded kernels."""
    fabric = fabric_with(name)
    mix, engine, options = synthetic_mix(fabric, 1), load_engine("dfsssp"), Options(lanes="path")
    for _ in range(2):
        plain = laid = None
        plain = engine.route(fabric, mix, options)
        laid = assign_lanes(fabric, plain, options)
    peak = peak_mb()
    safe = check_routes(fabric, laid).passed
    laying = laid.seconds - plain.seconds
    return LaneRun(laid.engine, laid.virtual_lanes, plain.seconds, laying, safe, peak)


def opensm_lanes(name: str, limit: float) -> tuple[str, str]:
    """(lanes, seconds) as text."""
    try:
        held = tables_of_opensm(fabric_with(name), "dfsssp", 1, limit)
    except Unavailable as error:
        return "–", str(error)
    return str(held.lanes), f"{held.seconds[0]:.3g}"


def main() -> None:
    """Measures all fabrics and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fabrics", nargs="*", default=list(FABRICS))
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for OpenSM")
    given = parser.parse_args()
    table = Table(
        "Virtual lanes",
        (
            "fabric",
            "ours: engine",
            "lanes",
            "routing s",
            "lanes s",
            "peak MB",
            "OpenSM: lanes",
            "s",
        ),
        "",
    )
    for name in available(given.fabrics):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            run = pool.apply(run_lanes, (name,))
        assert run.safe
        lanes, seconds = opensm_lanes(name, given.limit)
        table.add(
            name, run.engine, str(run.lanes), f"{run.routing:.3g}", f"{run.laying:.3g}",
            f"{run.peak_mb:.0f}", lanes, seconds,
        )  # fmt: skip
        print(table.text().splitlines()[-1], flush=True)
    print(table.text())


if __name__ == "__main__":
    main()
