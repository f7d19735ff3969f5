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
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_agent.routing.dag import U32
from sar_agent.routing.engine import Before, Options
from sar_agent.routing.mend import same_indices
from sar_agent.routing.routes import Routes

F64 = NDArray[np.float64]


class Senders(NamedTuple):
    """Who sends to each destination, and how much; C channels."""

    offset: U32
    """uint32[D + 1]"""
    leaf: U32
    """uint32[·]: from these switches, offset[d] … offset[d + 1] for destination d"""
    amount: F64
    """float64[·]: so much each."""
    capacity: F64
    """float64[C]"""


class Ways(NamedTuple):
    """How tables are followed."""

    channel_by_port: U32
    """uint32[S, 256]; what is no live channel is a number above all of them."""
    target: U32
    root: U32
    """uint32[D], the last switch before each destination."""
    last: U8
    """uint8[D], its port there."""
    switches: U32
    """uint32[·], those that are up"""


def keep_rows(
    before: Before,
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
    egress = routes.egress[0].copy()
    senders, ways = _senders(fabric, mix, options), _ways(fabric)
    old = before.routes.egress[0]
    amount = np.zeros(fabric.channels)
    _carry_all(ways, senders, egress, amount)
    harm = _take_back(ways, senders, old, egress, amount)
    if most is not None:
        for d in np.argsort(harm, kind="stable"):
            if np.count_nonzero(egress != old) <= most or np.isinf(harm[d]):
                break
            egress[d] = old[d]
    return replace(routes, egress=egress[None], mark=0)


def _senders(fabric: Fabric, mix: JobMix, options: Options) -> Senders:
    demand: F64
    if options.objective == "load":
        demand, capacity = route_demand(fabric, mix), fabric.channel_rate.astype(np.float64)
    else:
        demand, capacity = np.ones(len(mix.jobs)), np.ones(fabric.channels)
    leaf_offset, leaf, count = mix.by_leaf(fabric)
    to, leaves = [], []
    amounts: list[F64] = []
    for j in range(len(mix.jobs)):
        here = slice(leaf_offset[j], leaf_offset[j + 1])
        terminals = mix.terminal[mix.offset[j] : mix.offset[j + 1]]
        to.append(np.repeat(terminals, len(leaf[here])))
        leaves.append(np.tile(leaf[here], len(terminals)))
        amounts.append(np.tile(demand[j] * count[here], len(terminals)))
    if not to:
        none = np.zeros(0, np.uint32)
        return Senders(np.zeros(fabric.destinations + 1, np.uint32), none, np.zeros(0), capacity)
    destination = np.concatenate(to)
    order = np.argsort(destination, kind="stable")
    amount: F64 = np.concatenate(amounts)[order]
    offset = np.searchsorted(destination[order], np.arange(fabric.destinations + 1))
    return Senders(
        offset.astype(np.uint32),
        np.concatenate(leaves)[order].astype(np.uint32),
        amount,
        capacity,
    )


def _ways(fabric: Fabric) -> Ways:
    up = fabric.channel_up & fabric.switch_up[fabric.channel_target]
    channel = fabric.channel_by_port.copy()
    channel[(channel >= 0) & ~up[np.maximum(channel, 0)]] = -1
    return Ways(
        channel.view(np.uint32),
        fabric.channel_target.view(np.uint32),
        fabric.destination_switch.astype(np.uint32),
        fabric.destination_port,
        np.flatnonzero(fabric.switch_up).astype(np.uint32),
    )


@njit(cache=True)
def _carry_all(ways: Ways, senders: Senders, egress: U8, amount: F64) -> None:  # pragma: no cover
    for d in range(len(egress)):
        _carry(ways, senders, egress[d], d, 1.0, amount)


@njit(cache=True)
def _carry(
    ways: Ways, senders: Senders, row: U8, d: int, step: float, amount: F64
) -> float:  # pragma: no cover
    """Adds `step` times what is sent to d along its tree; the largest amount on the way then."""
    most = 0.0
    for i in range(senders.offset[d], senders.offset[d + 1]):
        v = senders.leaf[i]
        while v != ways.root[d]:
            c = ways.channel_by_port[v, row[v]]
            amount[c] += step * senders.amount[i] / senders.capacity[c]
            most = max(most, amount[c])
            v = ways.target[c]
    return most


@njit(cache=True)
def _take_back(
    ways: Ways, senders: Senders, old: U8, egress: U8, amount: F64
) -> F64:  # pragma: no cover
    """Gives trees their old rows where that is no worse. float64[D]: the largest amount on the old
    tree of each that did not take it; infinite where it cannot, or need not."""
    harm = np.full(len(egress), np.inf)
    for d in range(len(egress)):
        if not _differ(old[d], egress[d]) or not _as_short(ways, old[d], egress[d], d):
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
def _differ(old: U8, new: U8) -> bool:  # pragma: no cover
    found = np.uint8(0)
    for s in range(len(new)):
        found |= old[s] ^ new[s]
    return bool(found > 0)


@njit(cache=True)
def _as_short(ways: Ways, old: U8, new: U8, d: int) -> bool:  # pragma: no cover
    """Whether the old tree leads everywhere in no more hops than the new."""
    root, channels = ways.root[d], len(ways.target)
    if old[root] != ways.last[d]:
        return False
    for s in ways.switches:
        v, w = s, s
        while w != root:
            here, there = ways.channel_by_port[v, old[v]], ways.channel_by_port[w, new[w]]
            if v == root or here >= channels or there >= channels:
                return False
            v, w = ways.target[here], ways.target[there]
        if v != root:
            return False
    return True
