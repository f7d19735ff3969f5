"""Histories for the stand-ins of `fabric/standins.py`: `synthetic:taurus,seed=1,days=30`.

`…,largest=64` lets no job have more nodes than that, and more of them come; the paper prints no
sizes, so what depends on them can be seen that way.

Fitted to what sar-2016 says of the machines, by the knobs named here and no others; tests hold the
result against the marks:

- Taurus: more than 66 % of jobs use several switches (Section 1), some 14 route changes a day at a
  look every 5 minutes (4.3.2), 28 hosts of a job on 10 leaf switches (4.3.4). Jobs stay in an
  island, drawn by its size.
- Tsubame2.5: more than 50 % of jobs use several switches. How often its jobs changed is not said;
  the model's own arrivals, made so frequent that they fill most of the machine, change three of
  five samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from sar_agent.errors import InputError
from sar_agent.fabric.standins import ISLANDS, TSUBAME_HOSTS
from sar_lab.history.job_history import HistoryBuilder, JobHistory
from sar_lab.mixes.backfill import run_queue
from sar_lab.mixes.lublin import SubmittedJobs, Workload, submit_jobs
from sar_lab.mixes.node_selection import Pick, first_fit, pieces

DAY = 86400.0
BEGIN = 1704067200.0
"""Monday, 1 January 2024, 00:00 UTC: some date must be."""
WARM_UP = 21 * DAY
"""Lived through before the first day that is told, so that the machine is full and in pieces."""
_SPEC = re.compile(
    r"synthetic:([a-z]+)(?:,seed=(\d{1,9}))?(?:,days=([1-9]\d{0,3}))?(?:,largest=([1-9]\d{0,3}))?"
)


@dataclass(frozen=True)
class Machine:
    """A stand-in's jobs: the workload, the parts that are scheduled apart, and by which rule."""

    workload: Workload
    parts: tuple[int, ...]
    """Nodes of each; a job is drawn to one by size."""
    pick: Callable[[Generator], Pick]

    def with_largest(self, nodes: int) -> Machine:
        """Other sizes, and so many more or fewer jobs that they fill the machine about as much."""
        known = self.workload
        nodes = min(nodes, max(self.parts))
        gaps = known.gap_times * nodes / known.largest
        return replace(self, workload=replace(known, largest=nodes, gap_times=gaps))


MACHINES = {
    "taurus": Machine(
        Workload(largest=612, serial=0.1541, gap_times=22.0, time_times=20.0),
        ISLANDS,
        lambda random: pieces(random, 3),
    ),
    "tsubame": Machine(
        Workload(largest=512, gap_times=0.45), (TSUBAME_HOSTS,), lambda random: first_fit
    ),
}


def is_synthetic(spec: str) -> bool:
    """Whether `synthetic_history` is meant."""
    return spec.startswith("synthetic:")


def synthetic_history(spec: str) -> JobHistory:
    """The history of a spec, for the fabric `standin:` of the same name; one spec, one history.

    Jobs that run when it begins start at that moment, and those that run when it ends end then.
    Raises `InputError`.
    """
    match = _SPEC.fullmatch(spec)
    if not match or match[1] not in MACHINES:
        raise InputError(
            f"{spec!r} is no synthetic history",
            remedy="write synthetic:NAME,seed=1,days=30,largest=64 (all but the name may be left "
            f"out) with NAME one of {', '.join(MACHINES)}",
        )
    machine, seed, days = MACHINES[match[1]], int(match[2] or 1), int(match[3] or 30)
    if match[4]:
        machine = machine.with_largest(int(match[4]))
    random = np.random.default_rng(seed)
    until = WARM_UP + days * DAY
    rows = []
    for first, size, jobs in _by_part(machine, random, until):
        for ran in run_queue(jobs, size, machine.pick(random)):
            if ran.end > WARM_UP and ran.start < until:
                span = max(ran.start, WARM_UP), min(ran.end, until)
                rows.append((*span, first + ran.nodes))
    rows.sort(key=lambda row: (row[0], row[2][0]))
    width = max(3, len(str(sum(machine.parts))))  # as the generators name hosts
    shift = BEGIN - WARM_UP
    builder = HistoryBuilder(spec)
    builder.remark(f"synthetic, not a site's: {spec}")
    for i, (start, end, nodes) in enumerate(rows, start=1):
        names = [f"n{n + 1:0{width}d}" for n in nodes]
        builder.add(str(i), start + shift, end + shift, names)
    return builder.build()


def _by_part(
    machine: Machine, random: Generator, seconds: float
) -> list[tuple[int, int, SubmittedJobs]]:
    """(first node, nodes, jobs) of each part."""
    jobs = submit_jobs(machine.workload, random, seconds)
    sizes = np.array(machine.parts)
    chance = sizes * (sizes >= jobs.nodes[:, None])
    chance = chance.cumsum(axis=1) / chance.sum(axis=1, keepdims=True)
    part = (random.uniform(size=(len(jobs.nodes), 1)) > chance).sum(axis=1)
    first = np.cumsum([0, *machine.parts])
    return [(int(first[p]), size, jobs.only(part == p)) for p, size in enumerate(machine.parts)]
