"""Twelve rows of `tests.bench exceptions` in packets, with finite buffers, because the fluid
simulator judges all rows. `python -m tests.bench exceptions --only packets`.

Both simulate the tables of `dmodc` and of an engine. What a row decides is which is faster, and by
how much: the ratio of the two. Trees only, since the packet simulator has one lane.
"""

from __future__ import annotations

from statistics import fmean

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows, job_ends
from sar_lab.research.packets import packet_times
from tests.bench.exception_rows import oblivious, row_fabric, row_mix, row_name
from tests.bench.table import Table

ROWS = [
    (fabric, mix)
    for fabric in ("xgft:2;12,24;1,12", "xgft:2;24,12;1,12", "xgft:2;18,16;1,6",
                   "xgft:2;12,24;1,12 - 2 spines")
    for mix in ("in a row", "mix:1,placed=tree", "mix:1")
]  # fmt: skip
SEGMENTS = 4
"""Of a message of the largest job, 1 KB each."""


def packets_table(engine: str) -> Table:
    """The mean job's time on the engine's tables over that on dmodc's, by both simulators."""
    patterns = ("alltoall", "shift", "shift-free")
    table = Table(
        f"Twelve rows in packets: {engine} over dmodc, mean job",
        ("fabric / jobs", *(f"{name}: fluid, packets" for name in patterns)),
        f"Packets: buffers of 8 KB a link, messages of at least {SEGMENTS} KB.",
    )
    pairs = []
    for name, mix_name in ROWS:
        fabric, mix = row_fabric(name), row_mix(row_fabric(name), mix_name)
        ours, theirs = load_engine(engine).route(fabric, mix, Options()), oblivious(name, "dmodc")
        assert theirs is not None
        cells = []
        for pattern in patterns:
            made = PATTERNS[pattern](fabric, mix)
            flows = made._replace(size=made.size * (SEGMENTS * 8192e-9 / made.size.min()))
            new, old = _times(fabric, mix, ours, flows), _times(fabric, mix, theirs, flows)
            pairs.append((new[0] / old[0], new[1] / old[1]))
            cells.append("{:.3f}, {:.3f}".format(*pairs[-1]))
        table.add(row_name(name, mix_name), *cells)
    table.goals = [_agreement(pairs)]
    return table


def _agreement(pairs: list[tuple[float, float]]) -> str:
    apart = [abs(packets / fluid - 1) for fluid, packets in pairs]
    told = [(f, p) for f, p in pairs if abs(f - 1) > 0.01]
    alike = sum((f < 1) == (p < 1) for f, p in told)
    return (
        f"ratios apart: mean {fmean(apart):.1%}, at most {max(apart):.1%}; where the fluid "
        f"simulator sees more than 1 %, packets prefer the same tables in {alike} of {len(told)}"
    )


def _times(fabric: Fabric, mix: JobMix, routes: Routes, flows: Flows) -> tuple[float, float]:
    """When the mean job ends: fluid, packets."""
    links = routed_links(fabric, routes, flows)
    found = []
    for ends in (end_times(links, flows), packet_times(fabric, links, flows).end):
        found.append(float(job_ends(flows, ends, len(mix.jobs)).mean()))
    return found[0], found[1]
