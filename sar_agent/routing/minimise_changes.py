"""Keeps old entries where they are as good as the new ones, so that few entries change.

An engine that starts from nothing breaks ties by current loads, so one more job changes entries in
two thirds of all trees, mostly without any gain. Here each changed tree gets its old entries back
if they still lead everywhere in as few hops, and if the most loaded channel on its jobs' routes is
no more loaded than with the new entries. So the largest load of all cannot rise. Trees that no job
uses always get their old entries back.

With `most`, the number of entries that may change, further trees get their old entries back, those
first that raise loads least, until few enough change: a site may prefer stable tables to the last
few per cent. O(items · hops), plus O(S · hops) for each tree that changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.demand_items import DemandItems, demand_items_of
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.graph.next_hops import NextHops, differ, next_hops_of
from sar_agent.routing.repair import same_indices
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel, kernel_part


def keep_unchanged_rows(
    before: PreviousRoutes,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    options: Options,
    most: int | None = None,
) -> Routes:
    """`routes` (offset 0 only) with the trees of `before` that are as good. Lanes are not
    considered: the result must be checked like any other."""
    if not same_indices(before.fabric, fabric) or before.routes.egress.shape != routes.egress.shape:
        return routes
    egress, old = routes.egress[0].copy(), before.routes.egress[0]
    hops, demand = next_hops_of(fabric, live=True), _demand(fabric, mix, options)
    amount = np.zeros(fabric.channels)
    _carry_all(hops, demand, egress, amount)
    up = np.flatnonzero(fabric.switch_up).astype(np.uint32)
    harm = _restore_rows(hops, demand, up, fabric.destination_port, old, egress, amount)
    if most is not None:
        changed = np.count_nonzero(egress != old, axis=1)
        left = int(changed.sum())
        for d in np.argsort(harm, kind="stable"):
            if left <= most or np.isinf(harm[d]):
                break
            left -= int(changed[d])
            egress[d] = old[d]
    return replace(routes, egress=egress[None], mark=0)


class Demand(NamedTuple):
    """Who sends how much, and what channels can carry."""

    work: DemandItems
    capacity: F64
    """float64[C]"""


def _demand(fabric: Fabric, mix: JobMix, options: Options) -> Demand:
    rate = fabric.channel_rate.astype(np.float64)
    capacity = rate if options.objective == "load" else np.ones_like(rate)
    return Demand(demand_items_of(fabric, mix, options.objective), capacity)


@kernel
def _carry_all(hops: NextHops, demand: Demand, egress: U8, amount: F64) -> None:  # pragma: no cover
    for d in range(len(egress)):
        _carry(hops, demand, egress[d], d, 1.0, amount)


@kernel_part
def _carry(
    hops: NextHops, demand: Demand, row: U8, d: int, step: float, amount: F64
) -> float:  # pragma: no cover
    """Adds `step` times the traffic to d along its tree; returns the largest amount on the way."""
    most = 0.0
    work = demand.work
    if d + 1 >= len(work.on_offset):  # no job sends to a switch
        return most
    for m in work.on_member[work.on_offset[d] : work.on_offset[d + 1]]:
        for i in range(work.first[m], work.past[m]):
            v = work.leaf[i]
            sent = step * work.item[i]
            while v != hops.root[d]:
                c = hops.channel_by_port[v, row[v]]
                amount[c] += sent / demand.capacity[c]
                most = max(most, amount[c])
                v = hops.target[c]
    return most


@kernel
def _restore_rows(
    hops: NextHops, demand: Demand, up: U32, last: U8, old: U8, egress: U8, amount: F64
) -> F64:  # pragma: no cover
    """Gives trees their old rows where these are no worse. Returns float64[D]: the largest amount
    on the old tree of each that did not get it back; infinite where it could not, or already has
    it.

    `up` uint32[·]: the switches that are up; `last` uint8[D]: a destination's port at its
    switch."""
    harm = np.full(len(egress), np.inf)
    for d in range(len(egress)):
        if not differ(old[d], egress[d]) or old[d, hops.root[d]] != last[d]:
            continue
        if not _as_short(hops, up, old[d], egress[d], hops.root[d]):
            continue
        present = _carry(hops, demand, egress[d], d, 0.0, amount)
        _carry(hops, demand, egress[d], d, -1.0, amount)
        most = _carry(hops, demand, old[d], d, 1.0, amount)
        if most <= present * (1 + 1e-9):
            egress[d] = old[d]
        else:
            _carry(hops, demand, old[d], d, -1.0, amount)
            _carry(hops, demand, egress[d], d, 1.0, amount)
            harm[d] = most
    return harm


@kernel_part
def _as_short(
    hops: NextHops, up: U32, old: U8, new: U8, root: np.uint32
) -> bool:  # pragma: no cover
    """Whether the old tree leads from every switch to `root` in no more hops than the new one."""
    channels = len(hops.target)
    for s in up:
        v, w = s, s
        while w != root:
            before, after = hops.channel_by_port[v, old[v]], hops.channel_by_port[w, new[w]]
            if v == root or before >= channels or after >= channels:
                return False
            v, w = hops.target[before], hops.target[after]
        if v != root:
            return False
    return True
