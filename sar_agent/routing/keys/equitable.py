"""Equitable edge colouring: edges spread evenly over colours at every leaf and every subtree.

The flows of a phase are edges between the leaf they leave and the leaf they enter; a colour is a
middle switch. Two colours are balanced by pairing edges (D. de Werra, 1971): at each leaf the edges
of the two colours are paired, edges left over at leaves are paired in their subtree, and so on up;
once for the ends that send, once for those that receive. An edge then has at most one mate at each
end, so mates form paths and even cycles, along which the two colours alternate. At no leaf and no
subtree do the counts of the two colours then differ by more than one. This is repeated for any two
colours that differ by more, until no two do: each time a sum of squares falls. A leaf with at most
as many edges as colours then has no colour twice, which is König's theorem; and because subtrees
are balanced, too, the switches of the next level share the remaining edges evenly. Edges that stay
inside a subtree belong to their leaf and not to the subtree, so leaves come first: where an edge
that stays and one that leaves are both left over at a leaf, they are mates. O(colours² E) for each
sweep.

The paper repeats maximum matchings. Balancing pairs of colours has the same bound, and holds for
subtrees at once, so that slimmed trees keep it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import I32
from sar_agent.util.kernels import kernel, kernel_part

SWEEPS = 12
"""How many sweeps over all pairs of colours also balance subtrees; after them, leaves only."""


@kernel
def even_colours(tails: I32, heads: I32, problem: I32, few: I32) -> I32:  # pragma: no cover
    """int32[E]: a colour for each edge, of the `few` int32[problems] first of its problem.

    `tails`, `heads` are int32[K, E]: the node that each edge has at its leaf, at the subtree above,
    …; -1 where it does not leave that. Edges are sorted by `problem` int32[E], problems share no
    node, and nodes are numbered from 0 as they first come.
    """
    kinds, edges = tails.shape
    most = 1
    for k in range(kinds):
        for e in range(edges):
            most = max(most, tails[k, e] + 1, heads[k, e] + 1)
    colour = np.empty(edges, np.int32)
    # To begin with, the edges of each leaf take colours in turn; leaves start at different colours.
    given = np.full(most, -1, np.int32)
    count = np.zeros((2, kinds, most, few.max()), np.int32)
    for e in range(edges):
        u, colours = np.uint32(tails[0, e]), few[problem[e]]
        if given[u] < 0:
            given[u] = tails[0, e] % colours
        colour[e] = given[u]
        given[u] = (given[u] + 1) % colours
    _count(tails, heads, np.arange(edges).astype(np.int32), colour, count, 1)
    slot = np.full((most, 2), -1, np.int32)
    mate = np.empty((2, edges), np.int32)
    chosen = np.empty(edges, np.int32)
    done = np.empty(edges, np.bool_)
    span = np.empty((2, kinds, 2), np.int32)
    first = 0
    while first < edges:
        last = first
        span[:, :, 0], span[:, :, 1] = most, 0
        while last < edges and problem[last] == problem[first]:
            for k in range(kinds):
                for side in range(2):
                    node = tails[k, last] if side == 0 else heads[k, last]
                    if node >= 0:
                        span[side, k, 0] = min(span[side, k, 0], node)
                        span[side, k, 1] = max(span[side, k, 1], node + 1)
            last += 1
        sweep, changed, colours = 0, True, few[problem[first]]
        while changed:
            changed = False
            for a in range(colours):
                for b in range(a + 1, colours):
                    # After `SWEEPS` leaves only: each time the sum of squares over them falls.
                    if not _apart(count, span, a, b, kinds if sweep < SWEEPS else 1):
                        continue
                    changed = True
                    size = 0
                    for e in range(first, last):
                        if colour[e] == a or colour[e] == b:
                            chosen[size] = e
                            size += 1
                    _count(tails, heads, chosen[:size], colour, count, -1)
                    _pair(tails, chosen[:size], slot, mate[0])
                    _pair(heads, chosen[:size], slot, mate[1])
                    _take_turns(chosen[:size], mate, a, b, colour, done)
                    _count(tails, heads, chosen[:size], colour, count, 1)
            sweep += 1
        first = last
    return colour


@kernel_part
def _count(
    tails: I32, heads: I32, chosen: I32, colour: I32, count: I32, by: int
) -> None:  # pragma: no cover
    for e in chosen:
        for k in range(len(tails)):
            if tails[k, e] >= 0:
                count[0, k, np.uint32(tails[k, e]), np.uint32(colour[e])] += by
            if heads[k, e] >= 0:
                count[1, k, np.uint32(heads[k, e]), np.uint32(colour[e])] += by


@kernel_part
def _apart(count: I32, span: I32, a: int, b: int, kinds: int) -> bool:  # pragma: no cover
    """Whether the counts of colours a and b differ by more than one at a node of the problem."""
    for k in range(kinds):
        for side in range(2):
            for node in range(np.uint32(span[side, k, 0]), np.uint32(span[side, k, 1])):
                apart = count[side, k, node, a] - count[side, k, node, b]
                if apart > 1 or apart < -1:
                    return True
    return False


@kernel_part
def _pair(ends: I32, chosen: I32, slot: I32, mate: I32) -> None:  # pragma: no cover
    """Fills `mate` for the edges `chosen`; `slot` int32[nodes, 2] is -1 before and after."""
    for e in chosen:
        mate[e] = -1
    for k in range(ends.shape[0]):
        for e in chosen:  # edges of the same kind first
            if mate[e] >= 0 or ends[k, e] < 0:
                continue
            node = np.uint32(ends[k, e])
            leaves = 1 if k == 0 and len(ends) > 1 and ends[1, e] >= 0 else 0
            other = slot[node, leaves]
            if other < 0:
                slot[node, leaves] = e
            else:
                mate[e], mate[other] = other, e
                slot[node, leaves] = -1
        for e in chosen:
            if ends[k, e] < 0:
                continue
            node = np.uint32(ends[k, e])
            inner, outer = slot[node, 0], slot[node, 1]
            if inner >= 0 and outer >= 0:
                mate[inner], mate[outer] = outer, inner
            slot[node, 0] = slot[node, 1] = -1


@kernel_part
def _take_turns(
    chosen: I32, mate: I32, a: int, b: int, colour: I32, done: np.ndarray
) -> None:  # pragma: no cover
    """Gives colours a and b alternately along each path and cycle of mates; an odd path starts and
    ends with the colour that has fewer edges so far."""
    for e in chosen:
        done[e] = False
    ahead = 0  # edges of a less those of b
    for cycles in range(2):
        for first in chosen:
            if done[first]:
                continue
            side = 0
            if cycles == 0:
                if mate[0, first] >= 0 and mate[1, first] >= 0:
                    continue
                side = 1 if mate[1, first] >= 0 else 0
            c = a if ahead <= 0 else b
            e = first
            while e >= 0 and not done[e]:
                done[e] = True
                colour[e] = c
                ahead += 1 if c == a else -1
                c = a + b - c
                e = mate[side, e]
                side = 1 - side
