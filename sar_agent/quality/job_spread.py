"""The spread of jobs over leaf switches, which is all that a bound needs.

Minimal-hop routes between two terminals depend on their leaf switches alone, so a job is a few
numbers, its terminals per leaf. A square array of the traffic from leaf to leaf would suffice, too,
but at 11,664 hosts touching its memory alone takes longer than every cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.rates import route_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32
from sar_agent.jobs import JobMix
from sar_agent.util.kernels import kernel_part

F64 = NDArray[np.float64]


class JobSpread(NamedTuple):
    """J jobs, E entries (a job on a leaf switch), L leaf switches with jobs."""

    offset: U32
    """uint32[J + 1]: each job's entries."""
    job: U32
    """uint32[E]"""
    switch: U32
    """uint32[E]: the leaf switch."""
    terminals: F64
    """float64[E]: the job's terminals there."""
    size: F64
    """float64[J]: all its terminals."""
    demand: F64
    """float64[J]: Gbit/s that one route carries."""
    leaf: U32
    """uint32[L]: switch indices, ascending."""
    at: U32
    """uint32[L + 1] into `entry`: the entries on each leaf."""
    entry: U32
    """uint32[E]: entries by leaf."""


def spread_of(fabric: Fabric, mix: JobMix) -> JobSpread:
    """The number of every job's terminals per leaf switch, and related arrays."""
    offset, switch, count = mix.by_leaf(fabric)
    job = np.repeat(np.arange(len(mix.jobs)), np.diff(offset))
    entry = np.argsort(switch, kind="stable")
    leaf, start = np.unique(switch[entry], return_index=True)
    return JobSpread(
        offset.astype(np.uint32),
        job.astype(np.uint32),
        switch.astype(np.uint32),
        count.astype(np.float64),
        np.bincount(job, count, len(mix.jobs)).astype(np.float64),
        route_demand(fabric, mix),
        leaf.astype(np.uint32),
        np.append(start, len(entry)).astype(np.uint32),
        entry.astype(np.uint32),
    )


@kernel_part
def add_sources(spread: JobSpread, b: int, weight: F64, to: F64) -> None:  # pragma: no cover
    """Adds to `to[a]`, for every leaf switch a, its traffic to the b-th of `spread.leaf`: pairs of
    terminals of one job, each with the `weight` of its job (`float64[J]`)."""
    for i in range(spread.at[b], spread.at[np.uint32(b) + np.uint32(1)]):
        target = spread.entry[i]
        j = spread.job[target]
        for source in range(spread.offset[j], spread.offset[j + np.uint32(1)]):
            if source != target:
                to[spread.switch[source]] += (
                    spread.terminals[target] * spread.terminals[source] * weight[j]
                )
