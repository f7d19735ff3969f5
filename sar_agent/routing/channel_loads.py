"""What the jobs' trees put on each channel, and what it costs to put more there.

The price of a channel is steep in its load, (load + half an item)^5: the marginal cost of the sum
of sixth powers, which stands in for the largest load. Items of one weight class see all that is as
heavy or heavier, and little of what is lighter (`count_for_class`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric.model import F32, I64, U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph

LIGHTER = 4
"""Items lighter than what is placed count 1 / 2**LIGHTER: they can be moved out of the way."""


class ChannelLoads(NamedTuple):
    """What is on each channel, in exact integer units so that nothing drifts as jobs come and go,
    and what it costs to add to it."""

    units: I64
    """int64[K, C], by weight class."""
    share: F32
    """float32[C]: one unit as a share of what the channel can carry."""
    counted: I64
    """int64[C]: the units that the prices are made of (`count_for_class`)."""
    price: F32
    """float32[C]"""
    half_item: np.float32
    first_use: np.float32
    """Extra price of every channel that is in use already: 0, except in `reduce_dark_fiber`."""


@njit(cache=True)
def price_of(loads: ChannelLoads, channel: int) -> np.float32:  # pragma: no cover
    """What one more item costs on a channel with so much on it."""
    units = loads.counted[channel]
    x = np.float32(units) * loads.share[channel] + loads.half_item
    square = x * x
    price: np.float32 = square * square * x
    return price + loads.first_use if units else price


@njit(cache=True)
def count_for_class(loads: ChannelLoads, weight_class: int) -> None:  # pragma: no cover
    """Prices as items of this class see them: all that is as heavy or heavier, little of what is
    lighter. Without that, a heavy item that comes late finds every channel equally full."""
    classes, channels = loads.units.shape
    for c in range(channels):
        heavy = np.int64(0)
        light = np.int64(0)
        for k in range(classes):
            if k <= weight_class:
                heavy += loads.units[k, c]
            else:
                light += loads.units[k, c]
        loads.counted[c] = heavy + (light >> LIGHTER)
        loads.price[c] = price_of(loads, c)


@njit(cache=True)
def add(
    loads: ChannelLoads, weight_class: int, channel: int, units: int
) -> None:  # pragma: no cover
    """Puts units of that class on a channel, less than 0 takes them off; its price follows."""
    loads.units[weight_class, channel] += units
    loads.counted[channel] += units
    loads.price[channel] = price_of(loads, channel)


@njit(cache=True)
def carry_tree(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    egress: U8,
    d: int,
    sign: int,
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or takes off (-1) what `d`'s tree carries, as its row of `egress` stands.

    A path that ends early (no route, a dead cable still counts) is added as far as it goes.
    """
    root = work.root[d]
    tree = egress[d]
    channels = len(graph.target)
    for q in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            hops = 0
            while v != root and hops < len(tree):
                c = by_port[v, tree[v]]
                if c >= channels:
                    break
                add(loads, work.weight_class[job], c, sign * work.item[i])
                v = graph.target[c]
                hops += 1


@njit(cache=True)
def carry_trees(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    egress: U8,
    dests: U32,
    sign: int,
) -> None:  # pragma: no cover
    """`carry_tree` for each of `dests`."""
    for d in dests:
        carry_tree(graph, by_port, work, loads, egress, d, sign)
