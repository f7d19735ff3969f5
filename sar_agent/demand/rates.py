"""The demand of jobs on channels: the unit in which loads are counted.

While every job does all-to-all at once, a job of N terminals keeps each of them sending at the
rate of its slowest port, spread evenly over the N - 1 others (a collective runs at the pace of its
slowest member). One ordered pair, one *route*, then carries `rate / (N - 1)` Gbit/s, and the load
of a channel is the sum over the routes that cross it, divided by what it can carry: 1.0 is a full
link, slow or fast, and each of several parallel cables counts on its own.

A job whose traffic is declared (`ring`, `stencil2d:4x4`, …) sends to its partners alone, as fast.
**Weak spot:** a terminal is one rank. Of programs with several ranks on a host, `ring`, `bitcomp`
and a grid of hosts mean the same; `shift:K`, `transpose` and `butterfly` do not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.declared import declared_phases
from sar_agent.demand.patterns import rank_phases
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.model import Job, JobMix


def port_demand(fabric: Fabric, mix: JobMix) -> NDArray[np.float64]:
    """float64[J]: Gbit/s that each terminal of a job sends, the job's weight included."""
    if not mix.jobs:
        return np.zeros(0, np.float64)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    slowest = np.minimum.reduceat(fabric.terminal_rate[mix.terminal], mix.offset[:-1])
    return weight * slowest.astype(np.float64)


def route_demand(fabric: Fabric, mix: JobMix) -> NDArray[np.float64]:
    """float64[J]: Gbit/s that one route of each job carries, its weight included."""
    share = [
        flows.share if (flows := declared_flows(job)) else 1.0 / (len(job.terminals) - 1)
        for job in mix.jobs
    ]
    return port_demand(fabric, mix) * np.array(share, np.float64)


class DeclaredFlows(NamedTuple):
    """Who sends to whom in a job's declared traffic, all phases together."""

    pairs: I32
    """int32[2, ·]: sources and destinations, ranks."""
    share: float
    """The share of its rate at which a rank sends to each."""


def declared_flows(job: Job) -> DeclaredFlows | None:
    """None where `declared_phases` has none: then an all-to-all is expected."""
    if declared_phases(job) is None:
        return None
    return _flows(job.declared, len(job.terminals))


def undeclared(mix: JobMix) -> JobMix:
    """The jobs from which an all-to-all is expected."""
    jobs = tuple(job for job in mix.jobs if declared_flows(job) is None)
    return mix if len(jobs) == len(mix.jobs) else JobMix(jobs)


@lru_cache(maxsize=1024)
def _flows(pattern: str, size: int) -> DeclaredFlows:
    phases = [phase for phase in rank_phases(pattern, size) if len(phase.source)]
    pairs = np.concatenate([[phase.source, phase.destination] for phase in phases], axis=1)
    return DeclaredFlows(pairs.astype(np.int32), phases[0].weight / len(phases))
