"""What jobs send: the units that each leaf switch of a job sends to each of its terminals.

A terminal in a job is a *member* of it. Members of a job have the same senders, all of its leaf
switches, unless its traffic is declared: then each has the leaf switches of its partners.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import declared_flows, route_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U32
from sar_agent.jobs import JobMix

Objective = Literal["load", "routes"]
FULL_LOAD = 1 << 30
"""Integer units of load that a terminal sends at the fabric's fastest rate. Loads are integers, so
that none drifts as jobs come and go."""


class DemandItems(NamedTuple):
    """The members of jobs, and the leaf switches that send to each; M members, J jobs."""

    root: U32
    """uint32[T]: leaf switch of each terminal."""
    on_offset: U32
    """uint32[T + 1] into `on_member`: the members on each terminal."""
    on_member: U32
    job: U32
    """uint32[M]: each member's job."""
    member: U32
    """uint32[J + 1] into `job`, `terminal`: the members of each job, in the order of ranks."""
    terminal: U32
    unit: I64
    """int64[J]: what a terminal sends to each partner in the job, in units of load."""
    first: U32
    past: U32
    """uint32[M]: `leaf[first:past]` and `item[first:past]` are what sends to a member."""
    leaf: U32
    item: I64
    """int64[·]: how much the job's terminals at that leaf send to it."""
    elsewhere: I64
    """int64[·]: how many members at other leaves it sends to."""


def demand_items_of(
    fabric: Fabric, mix: JobMix, objective: Objective, *, sent: bool = False
) -> DemandItems:
    """The items of a mix. Units do not depend on the other jobs, so that loads can be kept while
    jobs come and go. `sent`: with objective `routes`, too, only pairs that send to each other."""
    jobs, switches = len(mix.jobs), fabric.switches
    job = np.repeat(np.arange(jobs), np.diff(mix.offset))
    terminal = ranks_of(fabric, mix)
    at = fabric.terminal_switch[terminal].astype(np.int64)
    unit = np.ones(jobs, np.int64)
    if objective == "load":
        share = route_demand(fabric, mix) / float(fabric.terminal_rate.max())
        unit = np.maximum(1, np.round(share * FULL_LOAD)).astype(np.int64)
    # Members with the same senders are a group: a job, or one member whose partners are declared.
    declared = {
        j: flows
        for j, flows in enumerate(map(declared_flows, mix.jobs))
        if flows is not None and (sent or objective == "load")
    }
    spread = np.ones(jobs, np.bool_)
    spread[list(declared)] = False
    group = np.where(spread[job], job, jobs + np.arange(len(job)))
    alike = np.flatnonzero(spread[job])
    pairs = [mix.offset[j] + flows.pairs for j, flows in declared.items()]
    sender, target = np.concatenate([np.stack([alike, alike]), *pairs], axis=1)
    order = np.lexsort((fabric.switch_guid[at[sender]], group[target]))
    sender, to = sender[order], group[target][order]
    place = to * switches + at[sender]
    begins = np.flatnonzero(np.diff(place, prepend=-1))
    known, here = np.unique(group * switches + at, return_counts=True)
    nearest = np.minimum(np.searchsorted(known, place[begins]), len(known) - 1)
    near = np.where(known[nearest] == place[begins], here[nearest], 0)
    sources = np.diff(np.append(begins, len(sender)))
    on_offset, on_member = _members_by_terminal(fabric, mix, terminal, job, unit)
    return DemandItems(
        root=fabric.terminal_switch.astype(np.uint32),
        on_offset=on_offset.astype(np.uint32),
        on_member=on_member.astype(np.uint32),
        job=job.astype(np.uint32),
        member=mix.offset.astype(np.uint32),
        terminal=terminal.astype(np.uint32),
        unit=unit,
        first=np.searchsorted(to[begins], group).astype(np.uint32),
        past=np.searchsorted(to[begins], group, "right").astype(np.uint32),
        leaf=at[sender[begins]].astype(np.uint32),
        item=(sources * unit[job[sender[begins]]]).astype(np.int64),
        elsewhere=np.bincount(group, minlength=1)[to[begins]] - near,
    )


def _members_by_terminal(
    fabric: Fabric, mix: JobMix, terminal: I32, job: NDArray[np.intp], unit: I64
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The members on each terminal; where jobs share hosts, in the order of the jobs' GUIDs."""
    place = np.arange(len(unit))
    offset = np.searchsorted(np.sort(terminal), np.arange(fabric.terminals + 1))
    if np.diff(offset).max(initial=0) > 1:
        guids = [np.sort(fabric.terminal_guid[each.terminals]).tolist() for each in mix.jobs]
        place = np.argsort(sorted(range(len(unit)), key=lambda j: (guids[j], unit[j])))
    return offset, np.lexsort((place[job], terminal))
