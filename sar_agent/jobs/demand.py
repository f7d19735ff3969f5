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

import logging
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.model import Job, JobMix
from sar_agent.jobs.patterns import rank_phases

log = logging.getLogger(__name__)


def port_demand(fabric: Fabric, mix: JobMix) -> NDArray[np.float64]:
    """float64[J]: Gbit/s that each terminal of a job sends, the job's weight included."""
    if not mix.jobs:
        return np.zeros(0, np.float64)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    slowest = np.minimum.reduceat(fabric.terminal_rate[mix.terminal], mix.offset[:-1])
    return weight * slowest.astype(np.float64)


def route_demand(fabric: Fabric, mix: JobMix) -> NDArray[np.float64]:
    """float64[J]: Gbit/s that one route of each job carries, its weight included."""
    partners = [
        flows.shape[1] if (flows := declared_flows(job)) is not None else len(job.terminals) - 1
        for job in mix.jobs
    ]
    return port_demand(fabric, mix) / np.array(partners, np.int64)


def declared_flows(job: Job) -> I32 | None:
    """int32[2, K, ·]: sources and destinations, ranks, of the job's declared traffic; a rank sends
    to K others. None where nothing is declared that says who sends to whom, or where it does not
    fit the job: then an all-to-all is expected."""
    return _flows(job.declared, len(job.terminals)) if job.declared else None


@lru_cache(maxsize=1024)
def _flows(pattern: str, size: int) -> I32 | None:
    try:
        phases = [phase for phase in rank_phases(pattern, size) if len(phase.source)]
    except InputError as error:
        log.warning("declared traffic that does not fit counts as an all-to-all: %s", error)
        return None
    # All phases have as many senders.
    return np.array([[each.source, each.destination] for each in phases], np.int32).swapaxes(0, 1)
