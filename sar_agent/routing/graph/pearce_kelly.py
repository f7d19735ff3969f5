"""A topological order that is kept while edges are inserted: Pearce's and Kelly's algorithm.

D. J. Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs",
ACM JEA 11, 2006. Every node has a place. An edge from x to y that agrees with the places costs
nothing. Otherwise the nodes between the two places that y leads to, and those that lead to x, are
searched for: if x is among the former the edge would close a cycle, else the nodes found share
their places out again, those before x first. An edge never leaves, so "closes a cycle" is final.

Good for graphs in which few edges disagree. `two_way_search.py` takes edges that mostly do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from sar_agent.fabric.model import I32, I64, U32
from sar_agent.routing.graph.shell_sort import sort_by
from sar_agent.routing.graph.successors import Successors


class Order(NamedTuple):
    """The order of N nodes, and scratch for one insertion at a time."""

    place: I32
    """int32[N]: place of each node; where x leads to y, x's is the smaller."""
    seen: I32
    """int32[N]: the last search that came by: 2 n forward, 2 n + 1 backward."""
    nodes: U32
    """uint32[N]: nodes of the present search, those ahead first."""
    searches: I64
    """int64[1]: n."""
    into: U32
    """uint32[largest degree]: successors or predecessors of one node."""


def new_order(place: I32, degree: int) -> Order:
    """An order of a graph that has no edge yet, or whose edges agree with `place`, in O(N)."""
    return Order(
        place,
        np.full(len(place), -1, np.int32),
        np.empty(len(place), np.uint32),
        np.zeros(1, np.int64),
        np.empty(max(1, degree), np.uint32),
    )


@register_jitable
def admits(
    graph: Any,
    successors: Successors,
    predecessors: Successors,
    order: Order,
    x: np.uint32,
    y: np.uint32,
    patience: int,
) -> bool:
    """Whether the edge from x to y closes no cycle; the order then agrees with it, and the caller
    puts it into the graph. False, too, where a search passes `patience` nodes.

    O(d log d) for the d nodes between the places of y and x that the searches find, and the edges
    of these nodes; O(1) where the order agrees already.

    >>> edges = set()
    >>> def after(graph, node, into):
    ...     heads = [y for x, y in sorted(graph) if x == node]
    ...     into[: len(heads)] = heads
    ...     return len(heads)
    >>> def before(graph, node, into):
    ...     tails = [x for x, y in sorted(graph) if y == node]
    ...     into[: len(tails)] = tails
    ...     return len(tails)
    >>> order = new_order(np.arange(3, dtype=np.int32), 3)
    >>> for edge in (2, 1), (1, 0), (0, 2):  # the third one closes a cycle
    ...     if admits(edges, after, before, order, *edge, 10):
    ...         edges.add(edge)
    >>> sorted(edges), order.place.tolist()
    ([(1, 0), (2, 1)], [2, 1, 0])
    """
    place, seen, nodes, into = order.place, order.seen, order.nodes, order.into
    low, high = place[y], place[x]
    if high < low:
        return True
    if x == y:
        return False
    order.searches[0] += 1
    forward = 2 * order.searches[0]
    backward = forward + 1
    one = np.uint32(1)
    # Forward from y up to x's place.
    nodes[0] = y
    seen[y] = forward
    ahead, i = one, np.uint32(0)
    while i < ahead:
        for k in range(successors(graph, nodes[i], into)):
            node = into[k]
            if node == x:
                return False
            if place[node] < high and seen[node] != forward:
                seen[node] = forward
                nodes[ahead] = node
                ahead += one
        i += one
        if ahead > patience:
            return False
    # Backward from x down to y's place.
    total = ahead + one
    nodes[ahead] = x
    seen[x] = backward
    while i < total:
        for k in range(predecessors(graph, nodes[i], into)):
            node = into[k]
            if place[node] > low and seen[node] != backward:
                seen[node] = backward
                nodes[total] = node
                total += one
        i += one
        if total > ahead + patience:
            return False
    _share_places(place, nodes[:ahead], nodes[ahead:total])
    return True


@register_jitable
def _share_places(place: I32, last: U32, first: U32) -> None:
    """Gives the nodes `first` the lowest of all their places and `last` the others; within each
    the order stays. Sorts both."""
    sort_by(first, place)
    sort_by(last, place)
    split, total = len(first), len(first) + len(last)
    places = np.empty(total, np.int32)
    i, j = 0, 0  # two sorted runs are merged
    for k in range(total):
        if j == len(last) or (i < split and place[first[i]] < place[last[j]]):
            places[k] = place[first[i]]
            i += 1
        else:
            places[k] = place[last[j]]
            j += 1
    for k in range(split):
        place[first[k]] = places[k]
    for k in range(split, total):
        place[last[k - split]] = places[k]
