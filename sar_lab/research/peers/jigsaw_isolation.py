"""Isolating placement against placement anywhere: utilisation, and the bandwidth that jobs keep.

The same jobs wait for the same machine under three placements: runs of up to three free nodes
anywhere (a scattering scheduler), the first free nodes, and a tree of its own for each job. At
moments of the schedule, routes of several engines are made for the jobs that run then, and the
throughput of a job is 1 divided by the load of its hottest link, at most 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job, multi_switch_mix
from sar_agent.quality import measure
from sar_agent.routing import Options, Routes, load_engine
from sar_lab.mixes.lublin import SubmittedJobs, Workload, submit_jobs
from sar_lab.mixes.node_selection import first_fit, pieces
from sar_lab.research.papers.claims import Claim, more, order, value
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import legend
from sar_lab.research.peers.isolating_placement import hosts_of, isolated_routes, space_of
from sar_lab.research.peers.placed_queue import NodeSpace, PlacedJob, run_placed
from sar_lab.research.statistics import median_of

SPEC = "xgft:2;12,24;1,12"
JOBS, EDGE, MOMENTS = 1000, 150, 12
"""Jobs of a queue; those at its beginning and end that are not judged; moments."""
LARGEST = 96
"""Nodes of the largest job: a third of the machine."""
CLOSE = 0.05
"""The share by which the utilisation may differ from 95.5 %."""
ROWS = ("scattered, ftree", "scattered, sar-plus", "first fit, ftree", "first fit, sar-plus",
        "isolated")  # fmt: skip
COLOURS = ("#999999", "#4477aa", "#ccbb44", "#66ccee", "#ee6677")
Schedule = Sequence[PlacedJob[Any]]
Cases = Sequence[tuple[JobMix, Routes]]
"""The jobs and routes of each moment."""


@dataclass(frozen=True)
class Kept:
    """One placement and engine on one queue."""

    utilisation: float
    mean: float
    """Throughput of the mean job on several switches, over moments."""
    worst: float
    """The same of the slowest job of each moment."""


def jigsaw_isolation(seeds: Sequence[int]) -> Outcome:
    """All placements on the queues of all seeds."""
    fabric = load_fabric(SPEC)
    found = by_key(outcome_of(seed) for seed in seeds)
    part = {
        name: {row: [getattr(each, name) for each in found[row]] for row in ROWS}
        for name in ("utilisation", "mean", "worst")
    }
    isolated = median_of(part["utilisation"]["isolated"]).value
    claims = [
        value("utilisation, isolated (per cent)", 95.5, 100 * isolated, CLOSE),
        order(
            "isolated: no job loses bandwidth to another",
            min(part["worst"]["isolated"]) >= 1 - 1e-9,
            f"{min(part['worst']['isolated']):.2f} at least",
        ),
        _more("utilisation", part["utilisation"], "first fit, sar-plus", "isolated"),
        _more("slowest job", part["worst"], "isolated", "scattered, ftree"),
    ]

    def draw(figure: Figure) -> None:
        panels = {"mean": "mean job", "worst": "slowest job at each moment"}
        for axes, (name, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            for row, colour in zip(ROWS, COLOURS, strict=True):
                use = 100 * np.array(part["utilisation"][row])
                axes.plot(use, part[name][row], "o", label=row, color=colour, alpha=0.8)
            axes.set(title=title, xlabel="utilisation (%)", ylim=(0, 1.05),
                     ylabel="share of its bandwidth that a job keeps")  # fmt: skip
        legend(figure, "outside lower center", ncols=5)
        figure.suptitle(
            f"{SPEC}: {fabric.terminals} hosts; a point for each of n = {len(seeds)} queues",
            fontsize=9,
        )

    table = ResultTable(
        ["placement, routes", "utilisation", "mean job", "slowest job"],
        [
            [
                row,
                f"{100 * median_of(part['utilisation'][row]).value:.1f} %",
                median_of(part["mean"][row]).words(),
                median_of(part["worst"][row]).words(),
            ]
            for row in ROWS
        ],
    )
    return Outcome(claims, tables=[table], draw=draw)


def queue_of(seed: int) -> SubmittedJobs:
    """`JOBS` jobs of the model; when they would arrive does not matter."""
    random = np.random.default_rng(seed)
    jobs = submit_jobs(Workload(largest=LARGEST, gap_times=0.01), random, 20 * 86400.0)
    return SubmittedJobs(jobs.arrival[:JOBS], jobs.nodes[:JOBS], jobs.seconds[:JOBS])


@measured
def outcome_of(seed: int) -> dict[str, Kept]:
    """What each row of `ROWS` gives on one queue."""
    fabric, jobs = load_fabric(SPEC), queue_of(seed)
    alone = run_placed(jobs, space_of(fabric))
    cases = [
        (
            mix_of(fabric, [hosts_of(job.place) for job in some]),
            isolated_routes(fabric, [job.place for job in some]),
        )
        for some in running_at(alone)
    ]
    found = {
        row: _kept(fabric, ran, routed) for row, ran, routed in placed_anywhere(fabric, jobs, seed)
    }
    return found | {"isolated": _kept(fabric, alone, cases)}


def placed_anywhere(
    fabric: Fabric, jobs: SubmittedJobs, seed: int, edge: int = EDGE, moments: int = MOMENTS
) -> Iterator[tuple[str, Schedule, Cases]]:
    """Jobs on any free nodes: `placement, engine`, what ran, and the cases of its moments."""
    everything = np.ones(fabric.terminals, np.bool_)
    picks = {"scattered": pieces(np.random.default_rng(seed), 3), "first fit": first_fit}
    for name, pick in picks.items():
        ran = run_placed(jobs, NodeSpace(everything.copy(), pick))
        running = running_at(ran, edge, moments)
        mixes = [mix_of(fabric, [job.place for job in some]) for some in running]
        for engine in ("ftree", "sar-plus"):
            cases = [(mix, load_engine(engine).route(fabric, mix, Options())) for mix in mixes]
            yield f"{name}, {engine}", ran, cases


def utilisation(ran: Schedule, nodes: int, edge: int = EDGE) -> float:
    """The share of the nodes' time in which they run jobs, from start `edge` to the start of the
    last but `edge`."""
    begin, end = ran[edge].start, ran[-edge].start
    busy = sum(max(0.0, min(j.end, end) - max(j.start, begin)) * j.size for j in ran)
    return busy / (nodes * (end - begin))


def running_at(
    ran: Schedule, edge: int = EDGE, moments: int = MOMENTS
) -> list[list[PlacedJob[Any]]]:
    """The jobs that run at even moments of the same time."""
    even = np.linspace(ran[edge].start, ran[-edge].start, moments + 2)[1:-1]
    return [[job for job in ran if job.start <= at < job.end] for at in even]


def mix_of(fabric: Fabric, places: Sequence[I32]) -> JobMix:
    jobs = [make_job(str(i), place.tolist()) for i, place in enumerate(places)]
    return multi_switch_mix(fabric, jobs)


def _kept(fabric: Fabric, ran: Schedule, cases: Cases) -> Kept:
    measures = [measure(fabric, mix, routes) for mix, routes in cases]
    return Kept(
        utilisation(ran, fabric.terminals),
        float(np.mean([each.throughput_mean for each in measures])),
        float(np.mean([each.throughput_min for each in measures])),
    )


def _more(what: str, by_row: dict[str, list[float]], row: str, other: str) -> Claim:
    return more(f"{what}: {row} above {other}", by_row[row], by_row[other])
