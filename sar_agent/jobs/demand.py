"""The demand of jobs on channels: the unit in which loads are counted.

While every job does all-to-all at once, a job of N terminals keeps each of them sending at the
rate of its slowest port, spread evenly over the N - 1 others (a collective runs at the pace of its
slowest member). One ordered pair, one *route*, then carries `rate / (N - 1)` Gbit/s, and the load
of a channel is the sum over the routes that cross it, divided by what it can carry: 1.0 is a full
link, slow or fast, and each of several parallel cables counts on its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.jobs.model import JobMix


def route_demand(fabric: Fabric, mix: JobMix) -> NDArray[np.float64]:
    """float64[J]: Gbit/s that one route of each job carries, its weight included."""
    if not mix.jobs:
        return np.zeros(0, np.float64)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    slowest = np.minimum.reduceat(fabric.terminal_rate[mix.terminal], mix.offset[:-1])
    demand: NDArray[np.float64] = weight * slowest.astype(np.float64) / (np.diff(mix.offset) - 1)
    return demand
