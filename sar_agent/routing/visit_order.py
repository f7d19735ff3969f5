"""The order in which a destination's switches are priced: a *visit order* for each destination
switch.

The order goes hop by hop, so that every switch comes after those to which it may forward, each with
the channels that lead one hop closer. Hops are known (`graph/hop_counts.py`), so no search is
needed: O(S + C) once for each destination switch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, U8, U32
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.hop_counts import FAR
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.util.kernels import kernel, kernel_part

ARENA_WORDS = 32 << 20
"""Words for visit orders: 128 MB, of which the machine provides only what is written to. When they
are full, orders are made again."""
NOT_YET = np.uint32(0xFFFFFFFF)


class VisitOrders(NamedTuple):
    """The visit orders so far. One begins at `begin[root]` of `arena`: the number of switches
    without the root; each switch as switch << 8 | port, the port towards the lowest GUID one hop
    closer; then, switch by switch, the number of its channels, and for each channel the next switch
    and the channel.
    """

    begin: U32
    """uint32[S]"""
    arena: U32
    used: U32
    """uint32[1]"""
    bucket: I32
    """int32[·], scratch: for each hop."""
    first: U32
    """uint32[S + 1], scratch: into `way`"""
    way: U32
    """uint32[C + 1], scratch: channels that lead one hop closer."""


def new_visit_orders(graph: Graph) -> VisitOrders:
    """A store without visit orders."""
    switches = len(graph.offset) - 1
    return VisitOrders(
        np.full(switches, NOT_YET, np.uint32),
        np.empty(ARENA_WORDS + _most_words(graph), np.uint32),
        np.zeros(1, np.uint32),
        np.empty(FAR + 2, np.int32),
        np.empty(switches + 1, np.uint32),
        np.empty(len(graph.target) + 1, np.uint32),
    )


@kernel
def _most_words(graph: Graph) -> int:  # pragma: no cover
    """The most words that one visit order takes."""
    return 1 + 2 * len(graph.offset) + 2 * len(graph.target)


@kernel_part
def visit_order_of(
    graph: Graph, cache: DagCache, orders: VisitOrders, hop: U8, root: int
) -> np.uint32:  # pragma: no cover
    """Where `root`'s visit order begins in the arena; it is made if it is not there. `hop`
    uint8[S]: the hops to the root. Where `cache` leaves shortest paths out, so does the order."""
    begin: np.uint32 = orders.begin[root]
    if begin != NOT_YET:
        return begin
    one, two, eight = np.uint32(1), np.uint32(2), np.uint32(8)
    if orders.used[0] + _most_words(graph) > len(orders.arena):
        orders.begin[:] = NOT_YET
        orders.used[0] = 0
    begin = orders.used[0]
    arena, first, way = orders.arena, orders.first, orders.way
    if len(cache.place):
        _look_in_dag(graph, cache, root, first, way)
    else:
        _look(graph, hop, first, way)
    size = _sort(hop, root, orders, arena[begin:])
    at = begin + one + size
    for i in range(begin + one, begin + one + size):
        v = arena[i]
        arena[at] = first[v + one] - first[v]
        at += one
        low = way[first[v]]
        for q in range(first[v], first[v + one]):
            w = graph.target[way[q]]
            arena[at], arena[at + one] = w, way[q]
            at += two
            if graph.rank[w] < graph.rank[graph.target[low]]:
                low = way[q]
        arena[i] = v << eight | np.uint32(graph.port[low])
    orders.used[0] = at
    orders.begin[root] = begin
    return begin


@kernel_part
def _look(graph: Graph, hop: U8, first: U32, way: U32) -> None:  # pragma: no cover
    """Lists in `way`, from `first[v]` on, the channels of v that lead one hop closer."""
    one, n = np.uint32(1), np.uint32(0)
    for v in range(np.uint32(len(hop))):
        first[v] = n
        near = np.uint8(hop[v] - np.uint8(1))
        for c in range(graph.offset[v], graph.offset[v + one]):
            # Written in any case, counted only if it leads closer: no branch to mispredict.
            way[n] = c
            n += np.uint32(graph.up[c] and hop[graph.target[c]] == near)
    first[len(hop)] = n


@kernel_part
def _look_in_dag(
    graph: Graph, cache: DagCache, root: int, first: U32, way: U32
) -> None:  # pragma: no cover
    """Lists in `way`, from `first[v]` on, the channels of v in the root's DAG."""
    one = np.uint32(1)
    row = dag_row(graph, cache, root)
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    first[:] = 0
    for i in range(one, cache.size[row]):
        first[order[i] + one] = start[i + one] - start[i]
    for v in range(len(first) - 1):
        first[v + 1] += first[v]
    for i in range(one, cache.size[row]):
        n = first[order[i]]
        for e in range(start[i], start[i + one]):
            way[n] = edge[e]
            n += one


@kernel_part
def _sort(hop: U8, root: int, orders: VisitOrders, order: U32) -> np.uint32:  # pragma: no cover
    """Writes the number of switches that reach the root, then these by hop."""
    bucket, size = orders.bucket, np.uint32(0)
    bucket[:] = 0
    for v in range(np.uint32(len(hop))):
        if hop[v] != FAR and v != root:
            bucket[hop[v] + np.uint32(1)] += 1
            size += np.uint32(1)
    for b in range(1, len(bucket)):
        bucket[b] += bucket[b - 1]
    order[0] = size
    for v in range(np.uint32(len(hop))):
        if hop[v] != FAR and v != root:
            order[bucket[hop[v]] + 1] = v
            bucket[hop[v]] += 1
    return size
