"""What no routing can beat: lower bounds from the cut around each leaf switch.

Everything a job sends from a leaf to its other leaves must leave over that leaf's live channels,
and everything it receives must enter; the busiest channel carries at least the mean.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand


def leaf_cut_bounds(fabric: Fabric, mix: JobMix) -> tuple[int, float]:
    """(least possible maximum effective EFI, least possible maximum load).

    The EFI bound is rounded up, because routes are whole; both are 0 without jobs.
    """
    routes = np.zeros(fabric.switches, np.float64)
    load = np.zeros(fabric.switches, np.float64)
    demand = route_demand(fabric, mix)
    leaf_offset, leaves, counts = mix.by_leaf(fabric)
    for index, job in enumerate(mix.jobs):
        part = slice(leaf_offset[index], leaf_offset[index + 1])
        size = len(job.terminals)
        crossing = counts[part].astype(np.float64) * (size - counts[part])
        routes[leaves[part]] += crossing
        load[leaves[part]] += crossing * demand[index]
    source = fabric.channel_source[fabric.channel_up]
    channels = np.maximum(1, np.bincount(source, minlength=fabric.switches))
    rate = np.bincount(source, fabric.channel_rate[fabric.channel_up], fabric.switches)
    bound_load = np.divide(load, rate, out=np.zeros_like(load), where=rate > 0)
    return int(np.ceil((routes / channels).max())), float(bound_load.max())
