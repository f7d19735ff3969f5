"""Adaptive routing by hardware's rules against static routes that know the jobs, in packets.

Each job exchanges the same amount between all its pairs, such that it would take one unit of time
on a crossbar: all at once, or in shift phases with a barrier after each. The slowdown of a job is
its time divided by that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid.flow_steps import Flows, job_ends
from sar_lab.fluid.job_patterns import all_to_all, shift
from sar_lab.research.packets import PacketModel
from sar_lab.research.packets.adaptive_groups import job_groups, minimal_groups, table_groups
from sar_lab.research.packets.packet_events import PortGroups
from sar_lab.research.packets.packet_model import Choice, adaptive_times
from sar_lab.research.papers.claims import Claim, more
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, median_table
from sar_lab.research.papers.pictures import grouped_bars, legend
from sar_lab.research.statistics import median_of

SPECS = ("xgft:2;12,24;1,12", "xgft:3;6,6,8;1,6,6")
SEGMENTS = 600
"""What each host sends: at least ten segments to each other host of the largest jobs."""
MODEL = PacketModel()
STATIC = ("dfsssp", "ftree", "sar-plus")
ADAPTIVE: tuple[tuple[str, Choice], ...] = (
    ("minimal", "flow"),
    ("minimal", "packet"),
    ("sar-plus", "flow"),
    ("sar-plus", "packet"),
)
ROWS = (*STATIC, *(f"adaptive, {ports} ports, per {choice}" for ports, choice in ADAPTIVE))
COLOURS = ("#999999", "#228833", "#4477aa", "#ccbb44", "#ee6677", "#66ccee", "#aa3377")
PATTERNS = {"all at once": all_to_all, "shift phases": shift}
Slowdowns = dict[str, dict[str, list[float]]]
"""`fabric, pattern` → row → one value for each seed."""


def adaptive_packets(seeds: Sequence[int]) -> Outcome:
    """All routes and patterns on all fabrics."""
    cases = [f"{spec}, {pattern}" for spec in SPECS for pattern in PATTERNS]
    mean: Slowdowns = {case: {} for case in cases}
    worst: Slowdowns = {case: {} for case in cases}
    for spec in SPECS:
        for (pattern, row), each in by_key(slowdowns(spec, seed) for seed in seeds).items():
            mean[f"{spec}, {pattern}"][row] = [float(np.mean(jobs)) for jobs in each]
            worst[f"{spec}, {pattern}"][row] = [max(jobs) for jobs in each]
    flow, packet, in_groups = ROWS[3], ROWS[4], ROWS[6]
    once, phases = ([f"{spec}, {p}" for spec in SPECS] for p in PATTERNS)
    claims = [
        *(_faster(worst, case, "sar-plus", flow) for case in once),
        *(_faster(mean, case, packet, "sar-plus") for case in phases),
        *(_faster(worst, case, in_groups, "sar-plus") for case in phases),
    ]

    def draw(figure: Figure) -> None:
        panels = {"mean job": mean, "slowest job": worst}
        names = [case.replace(", ", "\n") for case in cases]
        for axes, (title, of_case) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            found = {row: [median_of(of_case[case][row]) for case in cases] for row in ROWS}
            grouped_bars(axes, names, found, COLOURS, fontsize=7)
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set(title=title, ylabel="slowdown against a crossbar")
        legend(figure, "outside lower center", ncols=4, fontsize=8)
        figure.suptitle(
            f"n = {len(seeds)} mixes of jobs; bars are medians, whiskers their 95 % intervals",
            fontsize=9,
        )

    tables = [
        median_table(f"{title}, slowdown", of_case, {r: r for r in ROWS}, lambda r, of: of[r])
        for title, of_case in (("mean job", mean), ("slowest job", worst))
    ]
    return Outcome(claims, tables=tables, draw=draw)


@measured
def slowdowns(spec: str, seed: int) -> dict[tuple[str, str], list[float]]:
    """The slowdown of each job, by pattern and row."""
    fabric = load_fabric(spec)
    mix = synthetic_mix(fabric, seed)
    static = {name: load_engine(name).route(fabric, mix, Options()) for name in STATIC}
    groups = {name: table_groups(fabric, routes) for name, routes in static.items()}
    several = {
        "minimal": minimal_groups(fabric),
        "sar-plus": job_groups(fabric, static["sar-plus"], mix),
    }
    found = {}
    for pattern, make in PATTERNS.items():
        flows = scaled(fabric, make(fabric, mix))
        for name in STATIC:
            found[pattern, name] = _times(fabric, mix, groups[name], flows, "packet")
        for row, (ports, choice) in zip(ROWS[len(STATIC) :], ADAPTIVE, strict=True):
            found[pattern, row] = _times(fabric, mix, several[ports], flows, choice)
    return found


def unit(fabric: Fabric) -> float:
    """Seconds that `SEGMENTS` segments take on a host's own link."""
    return SEGMENTS * MODEL.segment_bytes * 8e-9 / float(fabric.terminal_rate.min())


def scaled(fabric: Fabric, flows: Flows) -> Flows:
    """The same flows, so small that one second becomes one `unit`."""
    return flows._replace(size=flows.size * unit(fabric))


def _times(
    fabric: Fabric, mix: JobMix, groups: PortGroups, flows: Flows, choice: Choice
) -> list[float]:
    end = adaptive_times(fabric, groups, flows, MODEL, choice).end
    last = job_ends(flows, end, len(mix.jobs))
    slowdown: list[float] = (last[last > 0] / unit(fabric)).tolist()
    return slowdown


def _faster(values: Slowdowns, case: str, name: str, other: str) -> Claim:
    return more(f"{case}: {name} before {other}", values[case][other], values[case][name])
