"""Is the fluid simulator right? The same messages as packets with finite buffers, and by SimGrid.

SimGrid shares links as the fluid model does, so it judges the code; packets judge the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import mix_of_spec
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.phase_contention import phase_contention
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.packets import PacketModel, packet_times
from tests.bench.table import Table
from tests.worlds.live.ask_simgrid import has_simgrid, judged

TREE, TAPERED = "xgft:2;12,24;1,12", "xgft:2;24,24;1,12"
TORUS, DRAGONFLY = "torus:4x4x4", "dragonfly:a=4,p=2,h=2"
ALL, TEN = "blocks:288", "blocks:30,7,50,18,40,5,64,11,33,20"
ROWS = (
    (TREE, ALL, "dmodc"),
    (TREE, ALL, "sar-plus"),
    (TREE, TEN, "ftree"),
    (TREE, TEN, "sar-plus"),
    (TREE, "mix:1", "dmodc"),
    (TREE, "mix:1", "sar-plus"),
    (TAPERED, "mix:1", "ftree"),
    (TAPERED, "mix:1", "sar-plus"),
    (TORUS, "mix:2", "updn"),
    (TORUS, "mix:2", "sar-plus"),
    (DRAGONFLY, "mix:1", "updn"),
    (DRAGONFLY, "mix:1", "sar-plus"),
)
SEGMENTS = 16
"""Of 1 KB, in each message of the largest job; other jobs send as much in fewer messages."""
MOST_FLOWS = 3_000
"""The most messages for SimGrid, whose time grows faster than their number."""


def tables(full: bool) -> Iterator[Table]:
    table = Table(
        "Is the fluid simulator right?",
        (
            "fabric, jobs, engine",
            "all at once: fluid",
            "packets",
            "one at a time: fluid",
            "packets",
            "phase contention",
            "SimGrid differs by",
        ),
        f"Mean job, slowest job in brackets; 1.00 is a network without contention. Packets: "
        f"{SEGMENTS} segments of 1 KB in each message of the largest job, room for "
        f"{PacketModel.buffer_segments} segments behind each link, one virtual lane. SimGrid: the "
        f"largest difference of a message's end time, both patterns, up to {MOST_FLOWS:,} "
        "messages each.",
    )
    simgrid = has_simgrid()
    for spec, name, engine in ROWS:
        table.add(f"{spec} {name} {engine}", *cells(spec, name, engine, simgrid))
    yield table


def cells(spec: str, name: str, engine: str, simgrid: bool) -> list[str]:
    """Of one row, without its name; the last one is – without SimGrid."""
    fabric = load_fabric(spec)
    mix = mix_of_spec(name, fabric)
    routes = routed(load_engine(engine), fabric, mix, Options())
    row: list[str] = []
    apart = [_times(fabric, mix, routes, each, row, simgrid) for each in ("alltoall", "shift")]
    known = [value for value in apart if value is not None]
    row.append(_cell(phase_contention(fabric, mix, routes.egress[0])))
    return [*row, f"{max(known):.0e}" if known else "–"]


def _times(
    fabric: Fabric, mix: JobMix, routes: Routes, pattern: str, row: list[str], simgrid: bool
) -> float | None:
    """Appends both times to `row`; returns how far SimGrid is from the fluid model."""
    flows = PATTERNS[pattern](fabric, mix)
    smallest = float(flows.size.min())
    unit = SEGMENTS * PacketModel.segment_bytes * 8e-9 / smallest
    flows = flows._replace(size=flows.size * unit)

    def per_job(times: Callable[[], F64]) -> F64:
        time = np.zeros(len(mix.jobs))
        np.maximum.at(time, flows.job, times())
        return time / unit

    ours = end_times(routed_links(fabric, routes, flows), flows)
    row.append(_cell(per_job(lambda: ours)))
    try:
        row.append(
            _cell(per_job(lambda: packet_times(routed_links(fabric, routes, flows), flows).end))
        )
    except CheckFailed:
        row.append("deadlock")
    if not simgrid or len(flows.size) > MOST_FLOWS:
        return None
    theirs = np.array(judged(routed_links(fabric, routes, flows), flows))
    return float(np.max(np.abs(ours / theirs - 1)))


def _cell(times: F64) -> str:
    return f"{times.mean():.2f} ({times.max():.2f})"
