"""Breadth-first search towards a root that keeps all shortest paths: its shortest-path DAG.

One DAG per destination switch serves all terminals of that switch. Hop count dominates every weight
(an engine only chooses among shortest paths), so which channels may be used towards a destination
depends on its leaf switch alone: one breadth-first search per leaf, and each of its terminals is
then a single pass over the DAG in hop order, without the heap of the Dijkstra search that OpenSM's
DFSSSP runs per destination.

The DAGs of all leaves of an 11,664-host tree take 60 MB, those of a 65,536-host tree 1.2 GB, and
are kept; on larger fabrics a direct-mapped cache holds as many as fit, rebuilding the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, U8, U32, Fabric
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel_part

CACHE_BYTES = 5 << 28
"""sar-plus needs each DAG some 60 times. On 65,536 hosts 256 MB held a quarter of the DAGs, and
growing all trees took twice as long."""


class DagCache(NamedTuple):
    """DAGs in rows: `slot[root]` is the row of a root, `tag[row]` the root whose DAG it holds now.

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
    place: I32
    """int32[S]: paths go up to switches of higher place, then down, where shortest paths do; empty:
    all shortest paths are kept."""
    turn: U8
    """uint8[S]: of the DAG that was built last, `FALLS`, `RISES` or `TURNS` for each switch."""


FALLS, RISES, TURNS = 0, 1, 2
"""The paths of a switch: all go down; all go up, then down; one that neither does."""


def new_cache(fabric: Fabric, place: I32 | None = None) -> DagCache:
    """An empty cache: a row for each leaf switch (fewer past `CACHE_BYTES`), one for all others."""
    switches, edges = fabric.switches, fabric.channels // 2 + 1
    rows = max(1, min(len(fabric.leaves), CACHE_BYTES // (4 * (edges + 3 * switches))))
    slot = np.full(switches, rows, np.uint32)
    by_guid = fabric.leaves[np.argsort(fabric.switch_guid[fabric.leaves])]
    slot[by_guid] = np.arange(len(by_guid)) % rows
    return DagCache(
        slot=slot,
        tag=np.full(rows + 1, -1, np.int32),
        size=np.zeros(rows + 1, np.uint32),
        order=np.empty((rows + 1, switches), np.uint32),
        start=np.empty((rows + 1, switches + 1), np.uint32),
        edge=np.empty((rows + 1, edges), np.uint32),
        lowest=np.empty((rows + 1, switches), np.uint32),
        hop=np.empty(switches, np.int32),
        place=np.empty(0, np.int32) if place is None else place,
        turn=np.empty(switches, np.uint8),
    )


@kernel_part
def dag_row(graph: Graph, cache: DagCache, root: int | np.integer) -> np.uint32:  # pragma: no cover
    """The cache row that holds `root`'s DAG, in O(1), or O(S + C) where it has to be built.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> from sar_agent.routing.graph.csr import graph_of
    >>> fabric = load_fabric("torus:4")
    >>> cache = new_cache(fabric)
    >>> row = dag_row(graph_of(fabric), cache, 0)
    >>> cache.order[row].tolist()
    [0, 1, 3, 2]
    >>> np.diff(cache.start[row]).tolist()  # two ways only from the switch opposite
    [0, 1, 1, 2]
    """
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
    if len(cache.place):
        _turn_once(graph, cache, row)
    return row


@kernel_part
def _turn_once(graph: Graph, cache: DagCache, row: np.uint32) -> None:  # pragma: no cover
    """Keeps the channels of paths that go up, then down; a switch without such a path keeps only
    the channel towards the switch of lowest GUID.

    A switch whence shortest paths go down only goes down, whatever comes to it from above.
    """
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    turn, place = cache.turn, cache.place
    turn[order[0]] = FALLS
    kept, first = np.uint32(0), np.uint32(0)
    for i in range(np.uint32(1), cache.size[row]):
        v, last = order[i], start[i + np.uint32(1)]
        best = np.uint8(TURNS)
        for e in range(first, last):
            w = graph.target[edge[e]]
            if place[w] < place[v]:
                if turn[w] == FALLS:
                    best = np.uint8(FALLS)
            elif turn[w] != TURNS:
                best = min(best, np.uint8(RISES))
        turn[v] = best
        only = cache.lowest[row, i]
        start[i] = kept
        for e in range(first, last):
            c = edge[e]
            w = graph.target[c]
            if best == TURNS:
                keeps = c == only
            elif best == FALLS:
                keeps = place[w] < place[v] and turn[w] == FALLS
            else:
                keeps = place[w] > place[v] and turn[w] != TURNS
            if keeps:
                edge[kept] = c
                if (
                    kept == start[i]
                    or graph.rank[w] < graph.rank[graph.target[cache.lowest[row, i]]]
                ):
                    cache.lowest[row, i] = c
                kept += np.uint32(1)
        first = last
    start[cache.size[row]] = kept
