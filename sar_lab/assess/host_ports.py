"""Hosts that run several jobs at once: the jobs share the host's own cable, whatever the routes.

Loads count links between switches alone. Where jobs share hosts, that is not what they wait for,
and a report that forgot it would promise a gain that nobody gets.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_lab.history.job_history import F64


def port_load(fabric: Fabric, mix: JobMix) -> F64:
    """float64[J]: for each job the largest load of its own terminals' cables, 1.0 being a full one
    while every job does all-to-all at once."""
    if not mix.jobs:
        return np.zeros(0, np.float64)
    size = np.diff(mix.offset)
    sent = np.repeat(route_demand(fabric, mix) * (size - 1), size)
    load = np.bincount(mix.terminal, sent, fabric.terminals) / fabric.terminal_rate
    return np.maximum.reduceat(load[mix.terminal], mix.offset[:-1])


def shared_hosts(fabric: Fabric, mix: JobMix) -> int:
    """How many hosts run more than one multi-switch job."""
    twice = np.flatnonzero(np.bincount(mix.terminal, minlength=fabric.terminals) > 1)
    return len({fabric.terminal_host[t] for t in twice.tolist()})
