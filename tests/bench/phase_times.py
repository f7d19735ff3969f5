"""Simulated times of jobs for `tests.bench exceptions`: all messages at once, and one at a time.

Large mixes take too long on irregular fabrics (a job on all 466 ports of dgx-ndr: more than ten
minutes). Above `PAIRS` pairs, shifts go through a sample of their phases, evenly spread, in which
messages are as many times longer; all at once is then the time that loads predict.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Routes
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_links import F64
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows

PAIRS = 60_000
"""Ordered pairs of one mix; `xgft:2;12,24;1,12` with one job on all 288 hosts has 82,656."""
LEAST = 8
"""Phases of a job that are always simulated, if it has so many."""
APART = 10_000.0
"""Seconds between jobs that are simulated one after the other. None takes so long."""


class PhaseTimes(NamedTuple):
    """Multiples of the time without contention; pairs are the mean job's and the slowest job's."""

    alltoall: tuple[float, float]
    shift: tuple[float, float]
    free: tuple[float, float]
    alone: float
    """Shift, each job alone on the tables of the mix; the mean job."""
    load: float
    """The largest load of a channel."""
    sampled: bool


def phase_times(fabric: Fabric, mix: JobMix, routes: Routes) -> PhaseTimes:
    """The times of a mix, which has a job at least."""
    loads = traffic_of(fabric, mix, routes)
    ranks = np.diff(mix.offset).astype(np.int64)
    share = PAIRS / float((ranks * (ranks - 1)).sum())
    if share < 1:
        alltoall = np.maximum(1.0, loads.job_load)
    else:
        alltoall = _times(fabric, mix, routes, PATTERNS["alltoall"](fabric, mix))
    shift, free = (_phases(fabric, mix, name, share) for name in ("shift", "shift-free"))
    together = alone = _times(fabric, mix, routes, shift)
    if len(mix.jobs) > 1:
        alone = _times(fabric, mix, routes, _one_after_the_other(shift))
    return PhaseTimes(
        _both(alltoall),
        _both(together),
        _both(_times(fabric, mix, routes, free)),
        float(alone.mean()),
        float(loads.load.max(initial=0.0)),
        share < 1,
    )


def _both(times: F64) -> tuple[float, float]:
    return float(times.mean()), float(times.max())


def _times(fabric: Fabric, mix: JobMix, routes: Routes, flows: Flows) -> F64:
    """float64[J]: from the start of each job."""
    ends = end_times(routed_links(fabric, routes, flows), flows)
    end = np.zeros(len(mix.jobs))
    np.maximum.at(end, flows.job, ends)
    begin = np.full(len(mix.jobs), np.inf)
    starts = _starts(flows)
    np.minimum.at(begin, flows.job[np.searchsorted(flows.step, starts)], flows.wait[starts])
    return end - begin


def _starts(flows: Flows) -> np.ndarray:
    """The steps that wait for no other."""
    return np.flatnonzero(np.concatenate([[True], flows.last[:-1]]))


def _one_after_the_other(shift: Flows) -> Flows:
    """With barriers each job has one sequence of steps, so it has one start."""
    wait, starts = shift.wait.copy(), _starts(shift)
    wait[starts] = APART * np.arange(len(starts))
    return shift._replace(wait=wait)


def _phases(fabric: Fabric, mix: JobMix, name: str, share: float) -> Flows:
    """`shift` or `shift-free`, of which a share of each job's phases is left."""
    flows = PATTERNS[name](fabric, mix)
    if share >= 1:
        return flows
    rank = np.empty(fabric.terminals, np.int64)
    kept, longer = np.zeros(len(flows.job), np.bool_), np.ones(len(mix.jobs))
    for j, ranks in enumerate(np.split(ranks_of(fabric, mix), mix.offset[1:-1])):
        n = len(ranks)
        rank[ranks] = np.arange(n)
        of = flows.job == j
        phase = (rank[flows.destination[of]] - rank[flows.source[of]]) % n
        count = min(n - 1, max(LEAST, round(share * (n - 1))))
        chosen = np.unique(np.linspace(1, n - 1, count).round().astype(np.int64))
        kept[of] = np.isin(phase, chosen)
        longer[j] = (n - 1) / len(chosen)
    steps = np.unique(flows.step[kept])
    sequence = np.cumsum(np.concatenate([[0], flows.last[:-1]]))[steps]
    return Flows(
        flows.source[kept],
        flows.destination[kept],
        flows.size[kept] * longer[flows.job[kept]],
        flows.job[kept],
        np.searchsorted(steps, flows.step[kept]).astype(np.uint32),
        np.append(sequence[1:] != sequence[:-1], True),
        np.zeros(len(steps)),
    )
