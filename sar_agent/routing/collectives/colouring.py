"""Proper edge colouring of a bipartite multigraph that keeps the colours there are (König, 1916).

Edges keep the colour that they wish where no edge before them at either end has it. Each other edge
takes a colour that is free at both ends or, along the shortest alternating path of two colours (a
Kempe chain), makes one free: the path begins at the head, of which colour b is free, with an edge
of colour a, which is free at the tail, so it never ends at the tail. A graph of degree d is always
coloured with d colours. A node of larger degree is split into copies of degree at most d, and each
colour then appears there at most once for each copy.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import I32, I64, Bool
from sar_agent.routing.tree_moves import Number
from sar_agent.util.kernels import kernel, kernel_part


@kernel
def proper_colours(
    tail: I64, head: I64, copies: I64, wish: I64, order: I64, colours: Number, may: Bool
) -> I32:  # pragma: no cover
    """int32[E]: a colour for each edge, the wished one where it can be; -1 where an edge is beyond
    the copies of an end.

    `tail`, `head` int64[E] are nodes 0 … N - 1 of each side, `copies` int64[2, N] how often a node
    of a side may have a colour, `order` int64[E] the edges in the order in which they are served.
    `may` bool[E]: edges that chains may recolour; where none of the others can be kept, all may.
    O(E · colours² · length of chains) at worst, O(E) where wishes fit."""
    edges, nodes = len(tail), copies.shape[1]
    first = np.zeros((2, nodes + 1), np.int64)
    for side in range(2):
        for node in range(nodes):
            first[side, node + 1] = first[side, node] + copies[side, node]
    most = max(first[0, nodes], first[1, nodes])
    degree = np.zeros((2, most), np.int64)
    edge_at = np.full((2, most, colours), -1, np.int64)
    end = np.full((2, edges), -1, np.int64)
    colour = np.full(edges, -1, np.int32)
    chain = np.empty(edges, np.int64)
    for e in order:
        a = wish[e]
        u = _copy_without(edge_at[0], degree[0], first[0], tail[e], a)
        v = _copy_without(edge_at[1], degree[1], first[1], head[e], a)
        if u >= 0 and v >= 0:
            _place(e, u, v, a, end, edge_at, degree, colour)
    for e in order:
        if colour[e] >= 0:
            continue
        u = _emptiest(degree[0], first[0], tail[e], colours)
        v = _emptiest(degree[1], first[1], head[e], colours)
        if u < 0 or v < 0:
            continue
        least, a, b = _shortest_chain(u, v, wish[e], edge_at, end, may, colours)
        side, x, c = 1, np.int64(v), np.int64(a)
        for n in range(least):
            f = edge_at[side, x, c]
            chain[n] = f
            side = 1 - side
            x, c = end[side, f], a + b - c
        for n in range(least):
            f = chain[n]
            edge_at[0, end[0, f], colour[f]] = edge_at[1, end[1, f], colour[f]] = -1
        for n in range(least):
            f = chain[n]
            colour[f] = a + b - colour[f]
            edge_at[0, end[0, f], colour[f]] = edge_at[1, end[1, f], colour[f]] = f
        _place(e, u, v, a, end, edge_at, degree, colour)
    return colour


@kernel_part
def _copy_without(
    edge_at: I64, degree: I64, first: I64, node: Number, colour: Number
) -> Number:  # pragma: no cover
    """The first copy of a node that has room and no edge of this colour; -1: none."""
    for x in range(first[node], first[node + 1]):
        if edge_at[x, colour] < 0 and degree[x] < edge_at.shape[1]:
            return x
    return -1


@kernel_part
def _emptiest(degree: I64, first: I64, node: Number, colours: Number) -> Number:  # pragma: no cover
    """The copy of a node with most room; -1: none has room."""
    best = -1
    for x in range(first[node], first[node + 1]):
        if degree[x] < colours and (best < 0 or degree[x] < degree[best]):
            best = x
    return best


@kernel_part
def _place(
    e: Number, u: Number, v: Number, a: Number, end: I64, edge_at: I64, degree: I64, colour: I32
) -> None:  # pragma: no cover
    end[0, e], end[1, e] = u, v
    edge_at[0, u, a] = edge_at[1, v, a] = e
    degree[0, u] += 1
    degree[1, v] += 1
    colour[e] = a


@kernel_part
def _shortest_chain(
    u: Number, v: Number, wish: Number, edge_at: I64, end: I64, may: Bool, colours: Number
) -> tuple[Number, Number, Number]:  # pragma: no cover
    """(edges, a, b): of all chains from copy `v` that make colour a free at both ends the shortest,
    counted without edges that may not be recoloured if there is one without any."""
    least, fixed = -1, 1 << 30
    best_a, best_b = np.int64(0), np.int64(0)
    for turn in range(colours):
        a = (wish + turn) % colours
        if edge_at[0, u, a] >= 0:
            continue
        if edge_at[1, v, a] < 0:
            return 0, np.int64(a), np.int64(a)
        for b in range(colours):
            if edge_at[1, v, b] >= 0:
                continue
            length, bad, side, x, c = 0, 0, 1, v, a
            while edge_at[side, x, c] >= 0:
                f = edge_at[side, x, c]
                length += 1
                bad += not may[f]
                if bad > fixed or (bad == fixed and length >= least):
                    break
                side = 1 - side
                x, c = end[side, f], a + b - c
            if edge_at[side, x, c] < 0 and (bad < fixed or (bad == fixed and length < least)):
                least, best_a, best_b, fixed = length, np.int64(a), np.int64(b), bad
    return least, best_a, best_b
