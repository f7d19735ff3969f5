"""Colours as uneven as can be: the first switches get most flows of a key, the others few.

A key whose flows are spread evenly over all middle switches meets every other key. One that fills
few of them leaves the others free, so that a shift (`shift.py`) finds switches where fewer flows of
other keys are. An edge colouring with as few colours as the flows of a leaf (König) is made uneven
by exchanging two colours along each path of their edges that begins and ends with the rarer one (a
Kempe chain): no leaf gets a colour twice, and the fuller colour gains an edge. Each exchange raises
the sum of squares over colours, so it ends.

The paper's repeated maximum matchings are as uneven, but may need more colours than the flows of a
leaf. **Weak spot:** the exchanges end where no pair of colours can gain, which need not be the most
uneven colouring.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import I32
from sar_agent.util.kernels import kernel, kernel_part


@kernel
def make_uneven(
    tails: I32, heads: I32, problem: I32, colour: I32, colours: int, room: I32
) -> None:  # pragma: no cover
    """Changes `colour` int32[E] in place; arguments as those of `even_colours`. Problems in which a
    leaf has a colour twice stay as they are. `room` int32[K]: how many edges of a colour a subtree
    of each kind may have, the first of which is 1."""
    kinds, edges = tails.shape
    most = 1
    for k in range(kinds):
        for e in range(edges):
            most = max(most, tails[k, e] + 1, heads[k, e] + 1)
    edge_at = np.full((2, most, colours), -1, np.int32)
    count = np.zeros((2, kinds, most, colours), np.int32)
    path = np.empty(edges, np.int32)
    seen = np.zeros(edges, np.bool_)
    size = np.zeros(colours, np.int64)
    first = 0
    while first < edges:
        last = first
        size[:] = 0
        twice = False
        while last < edges and problem[last] == problem[first]:
            c = colour[last]
            size[c] += 1
            for side in range(2):
                node = tails[0, last] if side == 0 else heads[0, last]
                twice |= edge_at[side, node, c] >= 0
                edge_at[side, node, c] = last
            _count_edge(tails, heads, last, c, count, 1)
            last += 1
        changed = not twice
        while changed:
            changed = False
            for i in range(colours):
                for j in range(i + 1, colours):
                    a, b = (i, j) if size[i] >= size[j] else (j, i)
                    if not size[b]:
                        continue
                    for e in range(first, last):
                        seen[e] = False
                    for e in range(first, last):
                        if colour[e] != b or seen[e]:
                            continue
                        steps = _path(tails, heads, e, a, b, edge_at, path, seen)
                        if steps % 2 and _exchange(
                            tails, heads, path[:steps], a, b, colour, edge_at, count, room
                        ):
                            size[a] += 1
                            size[b] -= 1
                            changed = True
        first = last


@kernel_part
def _count_edge(
    tails: I32, heads: I32, e: int, c: int, count: I32, by: int
) -> None:  # pragma: no cover
    for k in range(len(tails)):
        if tails[k, e] >= 0:
            count[0, k, tails[k, e], c] += by
        if heads[k, e] >= 0:
            count[1, k, heads[k, e], c] += by


@kernel_part
def _path(
    tails: I32, heads: I32, start: int, a: int, b: int, edge_at: I32, path: I32, seen: np.ndarray
) -> int:  # pragma: no cover
    """Fills `path` with the edges of the alternating path that begins with `start`, of colour b,
    and ends nowhere earlier; returns how many. 0 where no end of `start` lacks colour a."""
    side = 0
    if edge_at[0, tails[0, start], a] >= 0:
        if edge_at[1, heads[0, start], a] >= 0:
            return 0
        side = 1
    e, wanted, steps = start, a, 0
    while e >= 0:
        path[steps] = e
        seen[e] = True
        steps += 1
        side = 1 - side
        e = edge_at[side, tails[0, e] if side == 0 else heads[0, e], wanted]
        wanted = a + b - wanted
    return steps


@kernel_part
def _exchange(
    tails: I32, heads: I32, path: I32, a: int, b: int, colour: I32, edge_at: I32, count: I32,
    room: I32,
) -> bool:  # pragma: no cover  # fmt: skip
    """Exchanges the colours of a path, unless a subtree then has more edges of one than room."""
    for e in path:
        _count_edge(tails, heads, e, colour[e], count, -1)
        _count_edge(tails, heads, e, a + b - colour[e], count, 1)
    fits = True
    for e in path:
        c = a + b - colour[e]
        for k in range(1, len(tails)):
            if tails[k, e] >= 0 and count[0, k, tails[k, e], c] > room[k]:
                fits = False
            if heads[k, e] >= 0 and count[1, k, heads[k, e], c] > room[k]:
                fits = False
    if not fits:
        for e in path:
            _count_edge(tails, heads, e, colour[e], count, 1)
            _count_edge(tails, heads, e, a + b - colour[e], count, -1)
        return False
    for e in path:
        edge_at[0, tails[0, e], colour[e]] = edge_at[1, heads[0, e], colour[e]] = -1
    for e in path:
        colour[e] = a + b - colour[e]
        edge_at[0, tails[0, e], colour[e]] = edge_at[1, heads[0, e], colour[e]] = e
    return True
