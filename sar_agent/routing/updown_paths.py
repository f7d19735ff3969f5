"""Up*/Down* paths: up some channels, then down some, never up again.

M. D. Schroeder et al., "Autonet: a high-speed, self-configuring local area network using
point-to-point links", IEEE JSAC 9(8), 1991. Switches are ordered, and a channel leads up where its
end comes later in the order. Paths that never turn from down to up close no cycle of dependencies
on any fabric, so one lane is enough.

A table has one entry for each destination, whatever the source. So a switch that can reach the
destination by going down only must go down, or a packet that came from above would turn up again.
All other switches go up, by the shortest remaining path (their *legal distance*). From a fat tree's
hosts that is a shortest path. O(S + C) for each root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import I32, U8, U32, Bool, Fabric
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.kernels import kernel, kernel_part

FAR = np.int32(1 << 20)
"""The legal distance where there is no legal path."""


class Orientation(NamedTuple):
    """Which of the fabric's channels lead up, and which down."""

    higher: Bool
    """bool[C]: the channel is live and leads up."""
    lower: Bool
    """bool[C]: the channel is live and leads down."""
    falling: U32
    """uint32[S]: the switches, the highest first."""


class RootDistances(NamedTuple):
    """Legal distances to one root at a time, and the channels that lead closer to it."""

    distance: I32
    """int32[S], `FAR` where there is no legal path."""
    falls: Bool
    """bool[S]: the switch reaches the root by going down only."""
    order: U32
    """uint32[S]: the switches with a legal path, nearest first."""
    start: U32
    """uint32[S + 1]"""
    edge: U32
    """uint32[C]: channels edge[start[i]:start[i + 1]] lead order[i] one hop closer."""
    size: U32
    """uint32[1]: how many switches `order` holds."""
    root: I32
    """int32[1]: the root, -1 where `rest` is not filled."""
    rest: U8
    """uint8[S]: the port of each switch without a legal path towards some switch that has one
    (spines that lost a cable; no host's path passes there), `NO_ROUTE` elsewhere."""


def orient(fabric: Fabric, height: NDArray[np.integer]) -> Orientation:
    """A channel leads up to a switch of greater `height` int[S], or of greater GUID at the same
    height."""
    by_key = np.lexsort((fabric.switch_guid, height))
    place = np.empty(fabric.switches, np.int64)
    place[by_key] = np.arange(fabric.switches)
    rises = place[fabric.channel_target] > place[fabric.channel_source]
    live = fabric.channel_up
    return Orientation(live & rises, live & ~rises, by_key[::-1].astype(np.uint32))


def new_row(fabric: Fabric) -> RootDistances:
    """Scratch for one root."""
    switches, channels = fabric.switches, max(1, fabric.channels)
    return RootDistances(
        np.empty(switches, np.int32),
        np.empty(switches, np.bool_),
        np.empty(switches, np.uint32),
        np.empty(switches + 1, np.uint32),
        np.empty(channels, np.uint32),
        np.zeros(1, np.uint32),
        np.full(1, -1, np.int32),
        np.empty(switches, np.uint8),
    )


@kernel_part
def legal_tree(
    graph: Graph, legal: Orientation, row: RootDistances, root: int, last_port: np.uint8, tree: U8
) -> None:  # pragma: no cover
    """Fills `row`, if it is another root's, and writes into `tree` uint8[S] the entries that
    leave no choice: the root's last port, and those of switches without a legal path."""
    if row.root[0] != root:
        legal_row(graph, legal, row, root)
        _find_rest(graph, row)
        row.root[0] = root
    if row.size[0] < len(tree):
        for v in range(np.uint32(len(tree))):
            if row.rest[v] != NO_ROUTE:
                tree[v] = row.rest[v]
    tree[root] = last_port


@kernel_part
def legal_row(
    graph: Graph, legal: Orientation, row: RootDistances, root: int
) -> None:  # pragma: no cover
    """Fills `row` with the legal distances to `root`."""
    distance, falls, order = row.distance, row.falls, row.order
    row.root[0] = -1
    distance[:] = FAR
    falls[:] = False
    distance[root] = 0
    falls[root] = True
    order[0] = root
    size = np.uint32(1)
    i = np.uint32(0)
    while i < size:  # which switches go down: against the channels that lead up
        u = order[i]
        i += np.uint32(1)
        for c in range(graph.offset[u], graph.offset[u + np.uint32(1)]):
            v = graph.target[c]
            if legal.higher[c] and not falls[v]:
                falls[v] = True
                distance[v] = distance[u] + 1
                order[size] = v
                size += np.uint32(1)
    most = np.int32(0)
    for v in legal.falling:
        if not falls[v]:
            for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
                if legal.higher[c] and distance[graph.target[c]] + 1 < distance[v]:
                    distance[v] = distance[graph.target[c]] + 1
        if distance[v] < FAR:
            most = max(most, distance[v])
    # Counting sort by distance; the order among equals does not matter.
    first = np.zeros(most + 2, np.uint32)
    for v in range(np.uint32(len(distance))):
        if distance[v] < FAR:
            first[distance[v] + 1] += np.uint32(1)
    for k in range(most + 1):
        first[k + 1] += first[k]
    row.size[0] = first[most + 1]
    for v in range(np.uint32(len(distance))):
        if distance[v] < FAR:
            order[first[distance[v]]] = v
            first[distance[v]] += np.uint32(1)
    edges = np.uint32(0)
    row.start[0] = 0
    for k in range(row.size[0]):
        v = order[k]
        for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
            w = graph.target[c]
            if distance[w] + 1 == distance[v] and (
                (legal.lower[c] and falls[w]) if falls[v] else legal.higher[c]
            ):
                row.edge[edges] = c
                edges += np.uint32(1)
        row.start[np.uint32(k + 1)] = edges


@kernel
def unreached_leaves(
    graph: Graph, legal: Orientation, row: RootDistances, leaves: U32
) -> tuple[np.int64, np.int64]:  # pragma: no cover
    """The first pair (from, to) of leaf switches without a legal path; (-1, -1) where there is no
    such pair."""
    for root in leaves:
        legal_row(graph, legal, row, root)
        for leaf in leaves:
            if row.distance[leaf] >= FAR:
                return np.int64(leaf), np.int64(root)
    return np.int64(-1), np.int64(-1)


@kernel_part
def _find_rest(graph: Graph, row: RootDistances) -> None:  # pragma: no cover
    """Fills `row.rest`, nearest first, and appends these switches to `row.order`."""
    size, one = row.size[0], np.uint32(1)
    row.rest[:] = NO_ROUTE
    i = np.uint32(0)
    while i < size:
        u = row.order[i]
        i += one
        for c in range(graph.offset[u], graph.offset[u + one]):
            v = graph.target[c]
            if not graph.up[c] or row.distance[v] < FAR or row.rest[v] != NO_ROUTE:
                continue
            row.order[size] = v
            size += one
            for back in range(graph.offset[v], graph.offset[v + one]):
                if graph.up[back] and graph.target[back] == u:
                    row.rest[v] = graph.port[back]
                    break
