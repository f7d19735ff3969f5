"""Hosts that run several jobs at once: these jobs share the host's own cable, whatever the routes.

Link loads count links between switches only. Where jobs share hosts, they wait at the host's cable
instead, and a report without it would promise a gain that no job gets.
"""

from __future__ import annotations

import numpy as np

from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_lab.history.job_history import F64


def port_load(fabric: Fabric, mix: JobMix) -> F64:
    """float64[J]: for each job the largest load of its own terminals' cables while all jobs do an
    all-to-all at once; 1.0 is a full cable."""
    if not mix.jobs:
        return np.zeros(0, np.float64)
    size = np.diff(mix.offset)
    sent = np.repeat(port_demand(fabric, mix), size)
    load = np.bincount(mix.terminal, sent, fabric.terminals) / fabric.terminal_rate
    return np.maximum.reduceat(load[mix.terminal], mix.offset[:-1])


def shared_hosts(fabric: Fabric, mix: JobMix) -> int:
    """The number of hosts that run more than one multi-switch job."""
    twice = np.flatnonzero(np.bincount(mix.terminal, minlength=fabric.terminals) > 1)
    return len({fabric.terminal_host[t] for t in twice.tolist()})
