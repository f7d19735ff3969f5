"""What the jobs' routes put on every channel: route counts (effective EFI) and loads.

One walk per (destination terminal of a job, leaf switch with sources of that job), weighted by the
number of sources there: all of them share the rest of the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_agent.routing.dag import U32
from sar_agent.routing.dependencies import Tables, tables_of
from sar_agent.routing.routes import Routes


class Traffic(NamedTuple):
    """Per channel and per job; C channels, J jobs in the order of the mix."""

    efi: NDArray[np.int64]
    """int64[C], effective edge forwarding index (sar-2016, Definition 7): ordered pairs of
    terminals of one job whose route uses the channel, summed over jobs."""
    load: NDArray[np.float64]
    """float64[C]: the same with each route at its job's `route_demand`, as a share of what the
    channel can carry; 1.0 is a full link while every job does all-to-all at once."""
    job_efi: NDArray[np.int64]
    """int64[J], the largest `efi` among the channels the job uses (gamma_max(j))."""
    job_load: NDArray[np.float64]
    """float64[J], the largest `load` among them."""
    job_links: NDArray[np.int64]
    """int64[J], how many channels the job uses."""


def traffic_of(fabric: Fabric, mix: JobMix, routes: Routes) -> Traffic:
    """Walks the routes of LID offset 0. Where tables in force lead nowhere or in a circle, a walk
    ends; what it crossed so far counts, as packets would."""
    jobs = len(mix.jobs)
    traffic = Traffic(
        np.zeros(fabric.channels, np.int64),
        np.zeros(fabric.channels, np.float64),
        np.zeros(jobs, np.int64),
        np.zeros(jobs, np.float64),
        np.zeros(jobs, np.int64),
    )
    leaf_offset, leaf, count = (a.astype(np.uint32) for a in mix.by_leaf(fabric))
    _walk(
        tables_of(
            fabric,
            routes.egress[0],
            None,
            fabric.terminals_at > 0,
            np.ones(fabric.destinations, np.bool_),
        ),
        mix.offset.astype(np.uint32),
        mix.terminal.astype(np.uint32),
        leaf_offset,
        leaf,
        count,
        route_demand(fabric, mix),
        fabric.channel_rate.astype(np.float64),
        routes.egress[0],
        *traffic,
    )
    return traffic


@njit(cache=True)
def _walk(
    tables: Tables,
    offset: U32,
    terminal: U32,
    leaf_offset: U32,
    leaf: U32,
    count: U32,
    demand: NDArray[np.float64],
    capacity: NDArray[np.float64],
    egress: U8,
    efi: NDArray[np.int64],
    load: NDArray[np.float64],
    job_efi: NDArray[np.int64],
    job_load: NDArray[np.float64],
    job_links: NDArray[np.int64],
) -> None:  # pragma: no cover
    """First pass adds up, second pass takes each job's maximum over the channels it uses."""
    jobs = len(offset) - 1
    used = np.full(len(efi), -1, np.int64)
    for second in range(2):
        for j in range(jobs):
            for t in range(offset[j], offset[j + 1]):
                d = terminal[t]
                root, table = tables.root[d], egress[d]
                for i in range(leaf_offset[j], leaf_offset[j + 1]):
                    v = leaf[i]
                    hops = 0
                    while v != root and hops < len(table):
                        hops += 1
                        c = tables.channel_by_port[v, table[v]]
                        if c >= len(efi):
                            break
                        if second == 0:
                            efi[c] += count[i]
                            load[c] += count[i] * demand[j] / capacity[c]
                        elif used[c] != j:
                            used[c] = j
                            job_links[j] += 1
                            job_efi[j] = max(job_efi[j], efi[c])
                            job_load[j] = max(job_load[j], load[c])
                        v = tables.target[c]
