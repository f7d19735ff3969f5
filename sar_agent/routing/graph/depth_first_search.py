"""Depth-first search: does a path lead from one node to another?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from sar_agent.fabric.model import I64, U32
from sar_agent.routing.graph.successors import Successors


class Search(NamedTuple):
    """Scratch for one search at a time in a graph of N nodes, never cleared between two."""

    stack: U32
    """uint32[N]: nodes from which to search on."""
    seen: I64
    """int64[N]: number of the last search that came by."""
    searches: I64
    """int64[1]: how many there were."""
    into: U32
    """uint32[largest degree]: successors of one node."""


def new_search(nodes: int, degree: int) -> Search:
    """Scratch that no search has used, in O(N)."""
    return Search(
        np.empty(nodes, np.uint32),
        np.zeros(nodes, np.int64),
        np.zeros(1, np.int64),
        np.empty(max(1, degree), np.uint32),
    )


@register_jitable
def reaches(
    graph: Any,
    successors: Successors,
    source: np.uint32,
    target: np.uint32,
    limit: int,
    search: Search,
) -> bool:
    """Whether a path of one edge or more leads from `source` to `target`; True, too, where more
    than `limit` nodes would have to be visited to know.

    O(N + E), and no more than the edges of `limit` nodes.

    >>> from sar_agent.routing.graph.successors import Adjacency, adjacent
    >>> path = Adjacency(np.uint32([0, 1, 2, 2]), np.uint32([1, 2]))  # 0 → 1 → 2
    >>> search = new_search(3, 1)
    >>> reaches(path, adjacent, np.uint32(0), np.uint32(2), 10, search)
    True
    >>> reaches(path, adjacent, np.uint32(2), np.uint32(0), 10, search)
    False
    """
    stack, seen, into = search.stack, search.seen, search.into
    number = search.searches[0] + 1
    search.searches[0] = number
    stack[0] = source
    seen[source] = number
    depth, visited = 1, 0
    while depth:
        depth -= 1
        visited += 1
        if visited > limit:
            return True
        for k in range(successors(graph, stack[depth], into)):
            node = into[k]
            if node == target:
                return True
            if seen[node] != number:
                seen[node] = number
                stack[depth] = node
                depth += 1
    return False
