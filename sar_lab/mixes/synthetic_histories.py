"""Synthetic histories for the stand-ins of `fabric/standins.py`: `synthetic:taurus,seed=1,days=30`.

`…,largest=64` limits the nodes of a job, and more jobs arrive. The paper prints no job sizes; this
option shows what depends on them.

The histories are fitted to statements of sar-2016 on the machines, by the parameters named here and
no others; tests compare the result with these statements:

- Taurus: more than 66 % of jobs use several switches (Section 1), some 14 route changes a day when
  jobs are polled every 5 minutes (4.3.2), 28 hosts of a job on 10 leaf switches (4.3.4). Jobs stay
  in an island, drawn by its size.
- Tsubame2.5: more than 50 % of jobs use several switches. The paper does not say how
  often its jobs changed. The model's arrivals, made so frequent that they fill most of the machine,
  change three of five samples.
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
"""The arbitrary first day: Monday, 1 January 2024, 00:00 UTC."""
WARM_UP = 21 * DAY
"""Simulated before the first recorded day, so that the machine is full and fragmented."""
_SPEC = re.compile(
    r"synthetic:([a-z]+)(?:,seed=(\d{1,9}))?(?:,days=([1-9]\d{0,3}))?(?:,largest=([1-9]\d{0,3}))?"
)


@dataclass(frozen=True)
class Machine:
    """The jobs of a stand-in: the workload, the separately scheduled parts, the node selection."""

    workload: Workload
    parts: tuple[int, ...]
    """The nodes of each part; a job goes to a part with a chance proportional to its size."""
    pick: Callable[[Generator], Pick]

    def with_largest(self, nodes: int) -> Machine:
        """The machine with another largest job; the arrival rate changes so that it is about as
        full."""
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
    """Whether `spec` names a synthetic history."""
    return spec.startswith("synthetic:")


def synthetic_history(spec: str) -> JobHistory:
    """The history of a spec, for the fabric `standin:` of the same name. The same spec always gives
    the same history. Jobs that run at its begin start then, and jobs that run at its end end then.
    Raises `InputError`.
    """
    match = _SPEC.fullmatch(spec)
    if not match or match[1] not in MACHINES:
        raise InputError(
            f"{spec!r} is not a synthetic history",
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
    width = max(3, len(str(sum(machine.parts))))  # as the fabric generators name hosts
    shift = BEGIN - WARM_UP
    builder = HistoryBuilder(spec)
    builder.remark(f"The history is synthetic, not recorded at a site: {spec}")
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
