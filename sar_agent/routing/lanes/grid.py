"""Is the fabric a torus, and where on it is each switch?

A torus is recognised by its cables alone, whatever names and port numbers are: it is a product of
rings. Two cables at a switch belong to the same dimension where no square closes over them (the
next cable of a long ring), or where their ends are neighbours (a ring of three); opposite sides of
a square belong to the same dimension, too. Without the cables of one dimension the fabric falls
into as many components as the ring has switches, and a switch's component is its coordinate. A ring
of four counts as two dimensions of two, which is the same graph. The result is then compared with
every cable, so that no other network is taken for a torus; a torus that lacks a cable is not one.
O(S n²) for n dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32

if TYPE_CHECKING:  # it takes a sixth of a second to load, and most fabrics need one lane
    import networkx as nx

MOST_NEIGHBOURS = 16
Cable = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """Coordinates of S switches in n dimensions."""

    dims: tuple[int, ...]
    place: I32
    """int32[S, n]"""


def grid_of(fabric: Fabric) -> Grid | None:
    """The torus that the live fabric is; None where it is not a torus."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(fabric.switch_up).tolist())
    up = fabric.channel_up
    graph.add_edges_from(zip(fabric.channel_source[up], fabric.channel_target[up], strict=True))
    degrees = {len(around) for _, around in graph.adjacency()}
    if len(degrees) != 1 or len(graph) < fabric.switches or not 0 < max(degrees) <= MOST_NEIGHBOURS:
        return None
    classes = _dimensions(graph)
    coordinates = []
    for cables in classes:
        coordinate = _coordinate(graph, cables)
        if coordinate is None:
            return None
        coordinates.append(coordinate)
    place = np.stack(coordinates, axis=1).astype(np.int32)
    dims = tuple(int(k) for k in place.max(axis=0) + 1)
    if prod(dims) != len(graph) or len(np.unique(place, axis=0)) != len(graph):
        return None
    return Grid(dims, place) if _fits(fabric, dims, place) else None


def _dimensions(graph: nx.Graph[int]) -> list[list[Cable]]:
    """Cables (low end, high end), by dimension."""
    import networkx as nx

    same: nx.utils.UnionFind[Cable] = nx.utils.UnionFind()
    near = {v: set(around) for v, around in graph.adjacency()}

    def cable(a: int, b: int) -> Cable:
        return (a, b) if a < b else (b, a)

    for u, around in near.items():
        for v, w in combinations(sorted(around), 2):
            first, second = cable(u, v), cable(u, w)
            corners = (near[v] & near[w]) - {u}
            if w in near[v] or not corners:
                same.union(first, second)
            for x in corners:
                if w not in near[v] and x not in around:
                    same.union(first, cable(w, x))
                    same.union(second, cable(v, x))
    for a, b in graph.edges:
        same[cable(a, b)]
    return sorted(sorted(cables) for cables in same.to_sets())


def _coordinate(graph: nx.Graph[int], cables: list[Cable]) -> I32 | None:
    """int32[S]: the component of each switch without these cables, numbered along the ring that the
    components form; None where they form no ring."""
    import networkx as nx

    rest = graph.copy()
    rest.remove_edges_from(cables)
    piece = np.empty(len(graph), np.int32)
    for number, nodes in enumerate(nx.connected_components(rest)):
        piece[list(nodes)] = number
    ring: nx.Graph[int] = nx.Graph()
    ring.add_edges_from((int(piece[a]), int(piece[b])) for a, b in cables)
    sides = {len(around) for _, around in ring.adjacency()}
    if len(ring) <= piece.max() or sides != {min(len(ring) - 1, 2)} or not nx.is_connected(ring):
        return None
    turn = np.empty(len(ring), np.int32)
    turn[list(nx.dfs_preorder_nodes(ring, 0))] = np.arange(len(ring))
    coordinate: I32 = turn[piece]
    return coordinate


def _fits(fabric: Fabric, dims: tuple[int, ...], place: I32) -> bool:
    """Whether every live cable leads one step in one dimension, and no such step lacks a cable."""
    up = fabric.channel_up
    ends = fabric.channel_source[up], fabric.channel_target[up]
    step = (place[ends[1]] - place[ends[0]]) % dims
    single = (step > 0).sum(axis=1) == 1
    length = step.max(axis=1)
    size = np.array(dims)[step.argmax(axis=1)]
    pairs = len(np.unique(np.stack(ends, axis=1), axis=0))
    wanted = len(place) * sum(min(k - 1, 2) for k in dims)
    return bool(single.all() and ((length == 1) | (length == size - 1)).all() and pairs == wanted)
