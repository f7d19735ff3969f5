"""The order in which a destination's switches are priced: a *visit order* for each destination
switch.

The order goes hop by hop, so that every switch comes after those to which it may forward. Within
one hop it begins with siblings all of whose channels lead up (`siblings.py`), group by group; the
other switches follow, each with the channels that lead one hop closer. Hops are known
(`graph/hop_counts.py`), so no search is needed: O(S + C) once for each destination switch. Only
channels outside groups are stored: 10 KB a destination at 1,620 switches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, U8, U32
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.hop_counts import FAR
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.siblings import ALONE, Siblings
from sar_agent.util.kernels import kernel, kernel_part

ARENA_WORDS = 32 << 20
"""Words for visit orders: 128 MB, of which the machine provides only what is written to."""
NOT_YET = np.uint32(0xFFFFFFFF)


class VisitOrders(NamedTuple):
    """The visit orders so far. One begins at `begin[root]` of `arena`: the number of switches
    without the root; each switch as switch << 8 | port, the port towards the lowest GUID one hop
    closer; then runs of them: group, length of the run, channels of each switch; for group `ALONE`
    the next switch and the place of the weight of each channel follow.
    """

    begin: U32
    """uint32[S]"""
    arena: U32
    used: U32
    """uint32[1]"""
    by_group: U32
    """uint32[S]: the switches, siblings side by side."""
    bucket: I32
    """int32[·], scratch: for each hop, twice."""
    first: U32
    """uint32[S + 1], scratch: into `way`"""
    way: U32
    """uint32[C + 1], scratch: places in `siblings.channel` that lead one hop closer."""


def new_visit_orders(graph: Graph, siblings: Siblings) -> VisitOrders:
    """A store without visit orders."""
    switches = len(siblings.group)
    return VisitOrders(
        np.full(switches, NOT_YET, np.uint32),
        np.empty(ARENA_WORDS + _most_words(graph), np.uint32),
        np.zeros(1, np.uint32),
        np.lexsort((siblings.lane, siblings.group)).astype(np.uint32),
        np.empty(2 * FAR + 3, np.int32),
        np.empty(switches + 1, np.uint32),
        np.empty(len(graph.target) + 1, np.uint32),
    )


@kernel
def _most_words(graph: Graph) -> int:  # pragma: no cover
    """The most words that one visit order takes."""
    return 1 + 4 * len(graph.offset) + 2 * len(graph.target)


@kernel_part
def visit_order_of(
    graph: Graph,
    cache: DagCache,
    siblings: Siblings,
    orders: VisitOrders,
    hop: U8,
    busy: U32,
    root: int,
) -> np.uint32:  # pragma: no cover
    """Where `root`'s visit order begins in the arena; it is made if it is not there. `hop`
    uint8[S]: the hops to the root. Where `cache` leaves shortest paths out, so does the order, and
    switches have no siblings. Switches that are `busy` do not need the port towards the lowest
    GUID."""
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
        _look_outside(graph, siblings, hop, first, way)
    size = _sort(hop, root, orders, arena[begin:])
    at = header = begin + one + size
    h = np.uint8(0)
    for i in range(begin + one, begin + one + size):
        v = arena[i]
        ways = first[v + one] - first[v]
        group = ALONE if ways else siblings.group[v]
        if hop[v] != h or group != arena[header] or ways != arena[header + two]:
            h, header = hop[v], at
            arena[at], arena[at + one], arena[at + two] = group, 0, ways
            at += np.uint32(3)
        arena[header + one] += one
        port = np.uint8(0)
        if ways:
            low = way[first[v]]
            for q in range(first[v], first[v] + ways):
                w = graph.target[way[q]]
                arena[at], arena[at + one] = w, siblings.place[way[q]]
                at += two
                if graph.rank[w] < graph.rank[graph.target[low]]:
                    low = way[q]
            port = graph.port[low]
        elif not busy[v]:
            port = _lowest(siblings, hop, v)
        arena[i] = v << eight | np.uint32(port)
    orders.used[0] = at
    orders.begin[root] = begin
    return begin


@kernel_part
def _look_outside(
    graph: Graph, siblings: Siblings, hop: U8, first: U32, way: U32
) -> None:  # pragma: no cover
    """Lists in `way`, from `first[v]` on, all channels of v that lead one hop closer; no channel
    where all of them are in slots."""
    one = np.uint32(1)
    n = np.uint32(0)
    for v in range(np.uint32(len(hop))):
        first[v] = n
        near = np.uint8(hop[v] - np.uint8(1))
        for q in range(siblings.outside[v], siblings.outside[v + one]):
            # Written in any case, counted only if it leads closer: no branch to mispredict.
            way[n] = siblings.channel[q]
            n += np.uint32(hop[siblings.beyond[q]] == near)
        group = siblings.group[v]
        if group != ALONE and (n > first[v] or _any_as_far(siblings, hop, group, hop[v])):
            n = first[v]
            for c in range(graph.offset[v], graph.offset[v + one]):
                if graph.up[c] and hop[graph.target[c]] == near:
                    way[n] = c
                    n += one
    first[len(hop)] = n


@kernel_part
def _any_as_far(
    siblings: Siblings, hop: U8, group: np.uint32, hops: np.uint8
) -> bool:  # pragma: no cover
    """Whether one of the group's upper neighbours is `hops` from the root."""
    found = False
    for k in range(siblings.slot[group], siblings.slot[group + np.uint32(1)]):
        found |= hop[siblings.target[k]] == hops
    return found


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
    """Writes the number of switches that reach the root, then these by hop: first those without
    channels outside slots, siblings side by side."""
    bucket, first = orders.bucket, orders.first
    bucket[:] = 0
    size = np.uint32(0)
    for v in range(np.uint32(len(hop))):
        if hop[v] != FAR and v != root:
            outside = np.uint32(first[v + np.uint32(1)] > first[v])
            bucket[np.uint32(2) * hop[v] + outside + np.uint32(1)] += 1
            size += np.uint32(1)
    for b in range(1, len(bucket)):
        bucket[b] += bucket[b - 1]
    order[0] = size
    for v in orders.by_group:
        if hop[v] != FAR and v != root:
            outside = np.uint32(first[v + np.uint32(1)] > first[v])
            b = np.uint32(2) * hop[v] + outside
            order[bucket[b] + 1] = v
            bucket[b] += 1
    return size


@kernel_part
def _lowest(siblings: Siblings, hop: U8, v: np.uint32) -> np.uint8:  # pragma: no cover
    """The port towards the lowest neighbour in a slot one hop closer."""
    group = siblings.group[v]
    at = siblings.first[group] + siblings.lane[v]
    for k in range(siblings.slot[group], siblings.slot[group + np.uint32(1)]):
        if siblings.port[at] and hop[siblings.target[k]] + 1 == hop[v]:
            return np.uint8(siblings.port[at])
        at += siblings.size[group]
    return np.uint8(0)
