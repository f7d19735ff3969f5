"""What jobs send: the units that each leaf switch of a job sends to each of its terminals."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U8, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_agent.jobs.rank_order import ranks_of

Objective = Literal["load", "routes"]
FULL_LOAD = 1 << 30
"""Integer units of load that a terminal sends at the fabric's fastest rate. Loads are integers, so
that none drifts as jobs come and go."""


class DemandItems(NamedTuple):
    """The jobs of each terminal, and the leaf switches from which each job sends."""

    root: U32
    """uint32[T]: leaf switch of each terminal."""
    last_port: U8
    """uint8[T]: the leaf's port to each terminal."""
    on_offset: U32
    """uint32[T + 1] into `on_job`: the jobs of each terminal."""
    on_job: U32
    member: U32
    """uint32[J + 1] into `terminal`: the terminals of each job, in the order of their ranks."""
    terminal: U32
    unit: I64
    """int64[J]: what a terminal sends to each other one of the job, in units of load."""
    leaf_offset: U32
    """uint32[J + 1] into `leaf` and `item`."""
    leaf: U32
    item: I64
    """int64[·]: how much the job's terminals at that leaf send to each destination of the job."""
    rank_offset: U32
    """uint32[· + 1] into `rank`: the ranks at each of these leaves."""
    rank: U32
    phased: Bool
    """bool[J]: whether the job's messages go in the phases of a shift."""


def demand_items_of(fabric: Fabric, mix: JobMix, objective: Objective) -> DemandItems:
    """The items of a mix. Units do not depend on the other jobs, so that loads can be kept while
    jobs come and go."""
    sizes = np.diff(mix.offset)
    job = np.repeat(np.arange(len(mix.jobs)), sizes)
    terminal = ranks_of(fabric, mix)
    rank = np.arange(len(terminal)) - np.repeat(mix.offset[:-1], sizes)
    at = fabric.terminal_switch[terminal].astype(np.int64)
    order = np.lexsort((rank, fabric.switch_guid[at], job))
    begins = np.flatnonzero(np.diff(job[order] * fabric.switches + at[order], prepend=-1))
    unit = np.ones(len(mix.jobs), np.int64)
    if objective == "load":
        share = route_demand(fabric, mix) / float(fabric.terminal_rate.max())
        unit = np.maximum(1, np.round(share * FULL_LOAD)).astype(np.int64)
    on_offset, on_job = mix.by_terminal(fabric.terminals)
    if np.diff(on_offset).max(initial=0) > 1:  # of jobs that share hosts, in the order of GUIDs
        guids = [np.sort(fabric.terminal_guid[job.terminals]).tolist() for job in mix.jobs]
        place = np.argsort(sorted(range(len(unit)), key=lambda j: (guids[j], unit[j])))
        host = np.repeat(np.arange(fabric.terminals), np.diff(on_offset))
        on_job = on_job[np.lexsort((place[on_job], host))]
    sources = np.diff(np.append(begins, len(order)))
    leaf_job = job[order][begins]
    return DemandItems(
        root=fabric.terminal_switch.astype(np.uint32),
        last_port=fabric.terminal_switch_port.astype(np.uint8),
        on_offset=on_offset.astype(np.uint32),
        on_job=on_job.astype(np.uint32),
        member=mix.offset.astype(np.uint32),
        terminal=terminal.astype(np.uint32),
        unit=unit,
        leaf_offset=np.searchsorted(leaf_job, np.arange(len(mix.jobs) + 1)).astype(np.uint32),
        leaf=at[order][begins].astype(np.uint32),
        item=(sources * unit[leaf_job]).astype(np.int64),
        rank_offset=np.append(begins, len(order)).astype(np.uint32),
        rank=rank[order].astype(np.uint32),
        phased=np.array([job.traffic is None for job in mix.jobs], np.bool_),
    )
