"""Among equally good routes those that are there already: the smallest change.

An engine that computes everything anew breaks ties by the loads of the moment, so one job more
gives two thirds of all trees other entries, most of them for nothing. Here each of these trees is
offered its old entries back, and takes them where they still lead everywhere by as few hops, and
the most loaded channel on the way of its jobs' routes is no more loaded than on the new way. So the
peak of all cannot rise. Trees that no job uses always take them.

With `most`, entries that may change, trees go on taking their old entries after that, those first
that do least harm, until the rest is few enough: a site may prefer quiet tables to the last few
per cent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.graph.next_hops import NextHops, differ, next_hops_of
from sar_agent.routing.repair import same_indices
from sar_agent.routing.routes import Routes
from sar_agent.routing.weighted_trees import SendingTerminals, sources_of


def keep_unchanged_rows(
    before: PreviousRoutes,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    options: Options,
    most: int | None = None,
) -> Routes:
    """`routes` (offset 0 only) with as many trees of `before` as are as good. Lanes are not looked
    at: what comes out is to be checked like any other."""
    if not same_indices(before.fabric, fabric) or before.routes.egress.shape != routes.egress.shape:
        return routes
    egress, old = routes.egress[0].copy(), before.routes.egress[0]
    ways, senders = next_hops_of(fabric, live=True), _senders(fabric, mix, options)
    amount = np.zeros(fabric.channels)
    _carry_all(ways, senders, egress, amount)
    up = np.flatnonzero(fabric.switch_up).astype(np.uint32)
    harm = _take_back(ways, senders, up, fabric.destination_port, old, egress, amount)
    if most is not None:
        changed = np.count_nonzero(egress != old, axis=1)
        left = int(changed.sum())
        for d in np.argsort(harm, kind="stable"):
            if left <= most or np.isinf(harm[d]):
                break
            left -= int(changed[d])
            egress[d] = old[d]
    return replace(routes, egress=egress[None], mark=0)


class WeightedSenders(NamedTuple):
    """Who sends, and how much."""

    sources: SendingTerminals
    demand: F64
    """float64[J]: so much each of a job's terminals, to each of the others."""
    capacity: F64
    """float64[C]"""


def _senders(fabric: Fabric, mix: JobMix, options: Options) -> WeightedSenders:
    demand: F64 = np.ones(len(mix.jobs))
    capacity = np.ones(fabric.channels)
    if options.objective == "load":
        demand, capacity = route_demand(fabric, mix), fabric.channel_rate.astype(np.float64)
    return WeightedSenders(sources_of(fabric, mix), demand, capacity)


@njit(cache=True)
def _carry_all(
    ways: NextHops, senders: WeightedSenders, egress: U8, amount: F64
) -> None:  # pragma: no cover
    for d in range(len(egress)):
        _carry(ways, senders, egress[d], d, 1.0, amount)


@njit(cache=True)
def _carry(
    ways: NextHops, senders: WeightedSenders, row: U8, d: int, step: float, amount: F64
) -> float:  # pragma: no cover
    """Adds `step` times what is sent to d along its tree; the largest amount on the way then."""
    most = 0.0
    mix = senders.sources
    if d + 1 >= len(mix.on_offset):  # no job sends to a switch
        return most
    for j in mix.on_job[mix.on_offset[d] : mix.on_offset[d + 1]]:
        for i in range(mix.leaf_offset[j], mix.leaf_offset[j + np.int64(1)]):
            v = mix.leaf[i]
            sent = step * (senders.demand[j] * mix.leaf_count[i])
            while v != ways.root[d]:
                c = ways.channel_by_port[v, row[v]]
                amount[c] += sent / senders.capacity[c]
                most = max(most, amount[c])
                v = ways.target[c]
    return most


@njit(cache=True)
def _take_back(
    ways: NextHops, senders: WeightedSenders, up: U32, last: U8, old: U8, egress: U8, amount: F64
) -> F64:  # pragma: no cover
    """`up` uint32[·]: switches that are; `last` uint8[D]: a destination's port at its switch.

    Gives trees their old rows where that is no worse. float64[D]: the largest amount on the old
    tree of each that did not take it; infinite where it cannot, or need not."""
    harm = np.full(len(egress), np.inf)
    for d in range(len(egress)):
        if not differ(old[d], egress[d]) or old[d, ways.root[d]] != last[d]:
            continue
        if not _as_short(ways, up, old[d], egress[d], ways.root[d]):
            continue
        stands = _carry(ways, senders, egress[d], d, 0.0, amount)
        _carry(ways, senders, egress[d], d, -1.0, amount)
        most = _carry(ways, senders, old[d], d, 1.0, amount)
        if most <= stands * (1 + 1e-9):
            egress[d] = old[d]
        else:
            _carry(ways, senders, old[d], d, -1.0, amount)
            _carry(ways, senders, egress[d], d, 1.0, amount)
            harm[d] = most
    return harm


@njit(cache=True)
def _as_short(
    ways: NextHops, up: U32, old: U8, new: U8, root: np.uint32
) -> bool:  # pragma: no cover
    """Whether the old tree leads everywhere to `root` in no more hops than the new."""
    channels = len(ways.target)
    for s in up:
        v, w = s, s
        while w != root:
            here, there = ways.channel_by_port[v, old[v]], ways.channel_by_port[w, new[w]]
            if v == root or here >= channels or there >= channels:
                return False
            v, w = ways.target[here], ways.target[there]
        if v != root:
            return False
    return True
