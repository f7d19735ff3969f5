"""Minimal-hop DAGs, one per destination switch, shared by all terminals of that switch.

Hop count dominates every weight (an engine only chooses among shortest paths), so which channels
may be used towards a destination depends on its leaf switch alone: one breadth-first search per
leaf, and each of its terminals is then a single pass over the DAG in hop order, without the heap
of the Dijkstra search that OpenSM's DFSSSP runs per destination.

The DAGs of all leaves of an 11,664-host tree take 60 MB and are kept; on larger fabrics a
direct-mapped cache of bounded size holds as many as fit, rebuilding the others when needed.

Kernels index with *unsigned* integers: numba must test a signed index for Python's wrap-around
from the end, and in a loop of two loads and an addition that test costs three quarters of the
time (measured: 6.5 ns an edge signed, 1.6 ns unsigned).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import I32, U8, Bool, Fabric

U32 = NDArray[np.uint32]

CACHE_BYTES = 256 << 20


class Graph(NamedTuple):
    """The arrays of a `Fabric` that kernels read, as one argument numba understands."""

    offset: U32
    """uint32[S + 1]"""
    target: U32
    """uint32[C]"""
    port: U8
    """uint8[C]"""
    up: Bool
    """bool[C]"""
    rank: U32
    """uint32[S], place of each switch among all by GUID: ties are broken by it, not by index, so
    that the order in which a file lists switches changes no route."""


class DagCache(NamedTuple):
    """`slot[root]` names the row of a root; `tag[row]` which root's DAG is in it now.

    Row r: `order[r, :size[r]]` are the switches that reach the root, in hop order, the root first;
    `edge[r, start[r, i]:start[r, i + 1]]` are the channels that lead order[r, i] one hop closer.
    """

    slot: U32
    tag: I32
    size: U32
    order: U32
    start: U32
    edge: U32
    lowest: U32
    """`lowest[r, i]`: of order[r, i]'s channels the one towards the switch of lowest GUID."""
    hop: I32
    """int32[S], scratch."""


def graph_of(fabric: Fabric) -> Graph:
    """The fabric's live graph."""
    return Graph(
        fabric.channel_offset.astype(np.uint32),
        fabric.channel_target.astype(np.uint32),
        fabric.channel_port.astype(np.uint8),
        fabric.channel_up,
        np.argsort(np.argsort(fabric.switch_guid)).astype(np.uint32),
    )


def new_cache(fabric: Fabric) -> DagCache:
    """An empty cache with a row per leaf switch (fewer past `CACHE_BYTES`) and one for the rest."""
    switches, edges = fabric.switches, fabric.channels // 2 + 1
    rows = max(1, min(len(fabric.leaves), CACHE_BYTES // (4 * (edges + 3 * switches))))
    slot = np.full(switches, rows, np.uint32)
    slot[fabric.leaves] = np.arange(len(fabric.leaves)) % rows
    return DagCache(
        slot=slot,
        tag=np.full(rows + 1, -1, np.int32),
        size=np.zeros(rows + 1, np.uint32),
        order=np.empty((rows + 1, switches), np.uint32),
        start=np.empty((rows + 1, switches + 1), np.uint32),
        edge=np.empty((rows + 1, edges), np.uint32),
        lowest=np.empty((rows + 1, switches), np.uint32),
        hop=np.empty(switches, np.int32),
    )


@njit(cache=True)
def dag_row(graph: Graph, cache: DagCache, root: int) -> np.uint32:  # pragma: no cover
    """The cache row that holds `root`'s DAG, built if it is not there."""
    row: np.uint32 = cache.slot[root]
    if cache.tag[row] == root:
        return row
    hop, order = cache.hop, cache.order[row]
    start, edge, lowest = cache.start[row], cache.edge[row], cache.lowest[row]
    hop[:] = -1
    hop[root] = 0
    order[0] = root
    size = 1
    edges = 0
    start[0] = 0
    i = np.uint32(0)
    while i < size:
        u = order[i]
        first = edges
        low = np.uint32(0)
        for c in range(graph.offset[u], graph.offset[u + 1]):
            if not graph.up[c]:
                continue
            v = graph.target[c]
            if hop[v] < 0:
                # Cables have both directions or neither, so leaving u finds who can come to u.
                hop[v] = hop[u] + 1
                order[size] = v
                size += 1
            elif hop[v] == hop[u] - 1:
                # All switches one hop closer were found before u's turn came.
                edge[edges] = c
                if edges == first or graph.rank[v] < graph.rank[graph.target[low]]:
                    low = edge[edges]
                edges += 1
        lowest[i] = low
        i += np.uint32(1)
        start[i] = edges
    cache.size[row] = size
    cache.tag[row] = root
    return row
