"""Fits the routes to the switches' own LIDs around those that jobs use, closing no credit loop.

Between terminals, shortest paths of a tree go up, then down, even when cables are broken. The way
to a *switch* cannot always: a leaf that lost its cable to a spine reaches it over another leaf,
down and up again, and a dependency from a down channel to an up channel is what credit loops are
made of. Management traffic takes these routes on the same lane as the jobs. It is next to nothing,
so these trees are grown last: at each switch the first shortest continuation whose dependencies
close no cycle with all that is there already.

Since dependencies are only ever added, "closes a cycle" is final, and each is refused at most
once. Routes on which only *switches* send are left as they are: on a three-level tree no choice of
shortest paths between all pairs of switches is free of loops in one lane, so nothing can be
promised for them; the check reports it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.dag import U32, DagCache, Graph, dag_row
from sar_agent.routing.dependencies import collect_dependencies, empty_dependencies, tables_of

PRESENT, FORBIDDEN = 1, 2
ATTEMPTS = 200
SEARCH_LIMIT = 20_000
"""Channels one search may visit before the dependency is given up: no cycle was proved, but
another continuation is cheaper to find than the proof."""


def settle(fabric: Fabric, graph: Graph, cache: DagCache, egress: U8) -> None:
    """Rewrites the rows of the switches' own LIDs in `egress` uint8[T + S, S].

    Where no continuation fits, the entry stays as it was and the check will tell.
    """
    depends = empty_dependencies(fabric, 1)
    sends = fabric.terminals_at > 0
    tables = tables_of(fabric, egress[: fabric.terminals], None, sends)
    collect_dependencies(tables, depends)
    _settle(graph, cache, fabric.channel_by_port, sends, depends[0], egress[fabric.terminals :])


@njit(cache=True)
def _settle(
    graph: Graph,
    cache: DagCache,
    channel_by_port: I32,
    sends: NDArray[np.bool_],
    depends: NDArray[np.uint8],
    trees: U8,
) -> None:  # pragma: no cover
    channels = len(graph.target)
    fine = np.empty(trees.shape[1], np.bool_)
    stack = np.empty(channels, np.uint32)
    seen = np.zeros(channels, np.int64)
    search = 0
    for root in range(len(trees)):
        row = dag_row(graph, cache, root)
        size, order = cache.size[row], cache.order[row]
        start, edge = cache.start[row], cache.edge[row]
        tree = trees[root]
        settled = False
        for _attempt in range(ATTEMPTS):
            if settled:
                break
            settled = True
            # Every switch takes the first continuation not known to close a cycle here or later …
            fine[:] = False
            fine[root] = True
            for i in range(1, size):
                v = order[i]
                for e in range(start[i], start[i + 1]):
                    c1 = edge[e]
                    w = graph.target[c1]
                    if not fine[w]:
                        continue
                    if w != root:
                        c2 = channel_by_port[w, tree[w]]
                        if depends[c1, c2 - np.int64(graph.offset[w])] == FORBIDDEN:
                            continue
                    tree[v] = graph.port[c1]
                    fine[v] = True
                    break
            # … and what terminals then use is put in, or found to close one: then once more.
            for i in range(1, size):
                v = order[i]
                if not sends[v] or not fine[v]:
                    continue
                c1 = channel_by_port[v, tree[v]]
                v = graph.target[c1]
                while v != root:
                    c2 = channel_by_port[v, tree[v]]
                    rank = c2 - np.int64(graph.offset[v])
                    if depends[c1, rank] == 0:
                        search += 1
                        closes = _reaches(graph, depends, c2, c1, stack, seen, search)
                        depends[c1, rank] = FORBIDDEN if closes else PRESENT
                    if depends[c1, rank] == FORBIDDEN:
                        settled = False
                        break
                    c1 = c2
                    v = graph.target[c1]


@njit(cache=True)
def _reaches(
    graph: Graph,
    depends: NDArray[np.uint8],
    source: np.int32,
    wanted: np.int32,
    stack: U32,
    seen: NDArray[np.int64],
    search: int,
) -> bool:  # pragma: no cover
    """Does a chain of dependencies lead from channel `source` to `wanted`? (Or is it too long?)"""
    stack[0] = source
    seen[source] = search
    depth, visited = 1, 0
    while depth:
        depth -= 1
        c = stack[depth]
        visited += 1
        if visited > SEARCH_LIMIT:
            return True
        head = graph.target[c]
        base = graph.offset[head]
        for rank in range(graph.offset[head + 1] - base):
            if depends[c, rank] == PRESENT:
                following = base + rank
                if following == wanted:
                    return True
                if seen[following] != search:
                    seen[following] = search
                    stack[depth] = following
                    depth += 1
    return False
