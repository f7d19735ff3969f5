"""Hops between all pairs of switches, by breadth-first search."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U8
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel

FAR = 255
"""Hops where there is no way."""


@kernel
def all_hops(graph: Graph) -> U8:  # pragma: no cover
    """uint8[S, S]: hops between two switches over live cables, `FAR` where there is no way, or only
    a longer one. Cables have both directions or neither, so the matrix is symmetric. O(S C).

    >>> from sar_agent.fabric.spec import load_fabric
    >>> from sar_agent.routing.graph.csr import graph_of
    >>> all_hops(graph_of(load_fabric("torus:5")))[0].tolist()
    [0, 1, 2, 2, 1]
    """
    switches, one = np.uint32(len(graph.rank)), np.uint32(1)
    hops = np.full((switches, switches), FAR, np.uint8)
    queue = np.empty(switches, np.uint32)
    for root in range(switches):
        row = hops[root]
        row[root], queue[0] = 0, root
        i, size = np.uint32(0), one
        while i < size:
            u = queue[i]
            i += one
            for c in range(graph.offset[u], graph.offset[u + one]):
                v = graph.target[c]
                if graph.up[c] and row[v] == FAR and row[u] < FAR - 1:
                    row[v] = row[u] + 1
                    queue[size] = v
                    size += one
    return hops
