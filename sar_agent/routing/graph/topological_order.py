"""Kahn's algorithm: all nodes of a graph, none before one that leads to it.

A. B. Kahn, "Topological sorting of large networks", CACM 5(11), 1962. Nodes that nothing leads to
are taken one by one, each with its edges; whatever is left in the end is on a cycle or behind one.
Where the order covers a whole channel dependency graph there is no credit loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sar_agent.fabric.model import I32, U8, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import ChannelDependencies, Successors, waited_for
from sar_agent.util.kernels import kernel, kernel_template


@kernel_template
def kahn_order(
    graph: Any, successors: Successors, into: U32, waiting: I32, order: U32
) -> np.uint32:
    """Fills `order` uint32[N] and returns how many nodes it holds: N where there is no cycle.

    O(N + E). First in, first out, so that nodes come by the length of the longest path to them.
    `waiting` int32[N] and `into` uint32[largest degree] are scratch; after the call `waiting` is
    above 0 exactly for the nodes that are missing.

    >>> from sar_agent.routing.graph.successors import ParentGraph, parent_of
    >>> def order_of(parents):
    ...     into, waiting = np.empty(1, np.uint32), np.empty(len(parents), np.int32)
    ...     order = np.empty(len(parents), np.uint32)
    ...     graph = ParentGraph(np.int32(parents))
    ...     return order[: kahn_order(graph, parent_of, into, waiting, order)].tolist()
    >>> order_of([1, -1, 0])  # 2 → 0 → 1
    [2, 0, 1]
    >>> order_of([1, 0, 0])  # 0 → 1 → 0, 2 → 0
    [2]
    """
    nodes = np.uint32(len(order))
    waiting[:] = 0
    for node in range(nodes):
        for k in range(successors(graph, np.uint32(node), into)):
            waiting[into[k]] += 1
    taken = np.uint32(0)
    for node in range(nodes):
        order[taken] = node
        taken += np.uint32(waiting[node] == 0)
    return _take_free(graph, successors, into, waiting, order, np.uint32(0), taken)


@kernel_template
def _take_free(
    graph: Any,
    successors: Successors,
    into: U32,
    waiting: I32,
    order: U32,
    at: np.uint32,
    taken: np.uint32,
) -> np.uint32:
    """Takes all nodes that nothing leads to any more after order[at:taken]; returns how many are
    taken."""
    while at < taken:
        for k in range(successors(graph, order[at], into)):
            after = into[k]
            waiting[after] -= 1
            if waiting[after] == 0:
                order[taken] = after
                taken += np.uint32(1)
        at += np.uint32(1)
    return taken


@kernel
def broken_order(net: ChannelGraph, depends: U8, hints: U32) -> U32:  # pragma: no cover
    """uint32[C]: all channels, none before one that waits for it where there is no cycle. Each time
    that only channels on cycles or behind them are left, the first of `hints` uint32[C] that is
    among them is taken. O(C W)."""
    channels = len(net.target)
    waits = ChannelDependencies(net.offset, net.target, depends)
    order, into = np.empty(channels, np.uint32), np.empty(depends.shape[1], np.uint32)
    waiting = np.empty(channels, np.int32)
    taken = kahn_order(waits, waited_for, into, waiting, order)
    for c in hints:
        if waiting[c] > 0:
            waiting[c] = 0
            order[taken] = c
            taken = _take_free(waits, waited_for, into, waiting, order, taken, taken + np.uint32(1))
    return order


@kernel
def dependency_order(net: ChannelGraph, depends: U8) -> U32:  # pragma: no cover
    """uint32[C]: all channels, none before one that waits for it; shorter where there is a cycle.

    `depends` uint8[C, W] is 1 where a channel waits for that of a rank at the next switch. O(C W).
    """
    channels = len(net.target)
    order = np.empty(channels, np.uint32)
    taken = kahn_order(
        ChannelDependencies(net.offset, net.target, depends),
        waited_for,
        np.empty(depends.shape[1], np.uint32),
        np.empty(channels, np.int32),
        order,
    )
    return order[:taken]
