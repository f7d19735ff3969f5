"""The load of the jobs' trees on each channel, and the price of more load there.

The price of a channel is steep in its load, (load + half an item)^5: the marginal cost of the sum
of sixth powers, which approximates the largest load. An item sees all load of items that are as
heavy or heavier, and little of the load of lighter ones (`count_for_class`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F32, I64, U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel, kernel_part

LIGHTER = 4
"""Items lighter than the one that is placed count 1 / 2**LIGHTER: they can be moved later."""


class ChannelLoads(NamedTuple):
    """Load and price of each channel. Loads are integers, so that none drifts as jobs come and
    go."""

    units: I64
    """int64[K, C]: load by weight class."""
    share: F32
    """float32[C]: one unit as a share of the channel's capacity."""
    counted: I64
    """int64[C]: the load from which prices are computed (`count_for_class`)."""
    price: F32
    """float32[C]"""
    half_item: np.float32
    first_use: np.float32
    """Extra price of every channel in use: 0, except in `RouteBalance.reduce_dark_fiber`."""


@kernel_part
def price_of(loads: ChannelLoads, channel: int) -> np.float32:  # pragma: no cover
    """The price of one more item on a channel. O(1)."""
    units = loads.counted[channel]
    x = np.float32(units) * loads.share[channel] + loads.half_item
    square = x * x
    price: np.float32 = square * square * x
    return price + loads.first_use if units else price


@kernel
def count_for_class(loads: ChannelLoads, weight_class: int) -> None:  # pragma: no cover
    """Sets all prices to those that items of this class see: they count all load of classes as
    heavy or heavier, and little of lighter ones. Without that, a heavy item that comes late finds
    every channel equally full. O(K C)."""
    classes, channels = loads.units.shape
    counted = loads.counted
    counted[:] = 0
    for k in range(weight_class + 1, classes):  # class by class, in vectors
        for c in range(channels):
            counted[c] += loads.units[k, c]
    for c in range(channels):
        counted[c] >>= LIGHTER
    for k in range(min(weight_class + 1, classes)):
        for c in range(channels):
            counted[c] += loads.units[k, c]
    for c in range(channels):
        loads.price[c] = price_of(loads, c)


@kernel_part
def add(
    loads: ChannelLoads, weight_class: int, channel: int, units: int
) -> None:  # pragma: no cover
    """Adds units of that class to a channel (negative ones remove load) and updates its price."""
    loads.units[weight_class, channel] += units
    loads.counted[channel] += units
    loads.price[channel] = price_of(loads, channel)


@kernel_part
def carry_tree(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    egress: U8,
    d: int,
    sign: int,
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or removes (-1) the load of destination `d`'s tree, its row of `egress`.

    A path that ends early counts as far as it goes; a dead cable counts like any other. O(items ·
    hops).
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


@kernel
def carry_trees(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    egress: U8,
    dests: U32,
    sign: int,
) -> None:  # pragma: no cover
    """Adds or removes the load of the trees of all `dests`, as `carry_tree` does for one."""
    for d in dests:
        carry_tree(graph, by_port, work, loads, egress, d, sign)
