"""One colour for all edges of an item that several phases share, by Kempe chains.

An *edge* is one item in one phase; an item has one colour in all phases. Where the edges of an item
have different colours, all take the colour of the first. Nodes that then have too many edges of a
colour a are relieved: one such edge takes a colour b with room; at its other end an edge of b takes
a, and so on until there is room (A. B. Kempe, 1879). Without shared items one chain is always
enough. With them a chain may crowd nodes of other phases, so chains that help are kept, others are
undone, and the best state is the result. The search is deterministic: its budget is a number of
chains, not of seconds.

**Weak spot:** `CHAINS`, `IDLE` and how often a worse state is kept were tuned on the papers' trees;
nothing bounds how far from the goals the result may be. `RoutingKey.contention` says how far it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sar_agent.fabric.model import I32
from sar_agent.util.kernels import kernel, kernel_part

CHAINS = 200_000
"""How many chains are tried at most: a third of a second. Most keys take up to some thousands;
where all hosts of a machine send in each of six phases, some flows may still share a link in the
end."""
IDLE = 20_000
"""After so many chains without an improvement the search ends."""
Whole = int | np.signedinteger[Any]


class Edges(NamedTuple):
    """The edges of all phases. Nodes are numbered across phases, so that each node has one
    phase."""

    tail: I32
    """int32[E]"""
    head: I32
    """int32[E]"""
    item: I32
    """int32[E], below the number of items."""
    weight: I32
    """int32[E]: flows of the phase."""


def recolour(edges: Edges, colour: I32, colours: int) -> I32:
    """int32[E]: colours that are equal for all edges of an item."""
    items = int(edges.item.max()) + 1
    of_item = np.full(items, -1, np.int32)
    of_item[edges.item[::-1]] = colour[::-1]  # that of the first edge
    if (of_item[edges.item] == colour).all() and (edges.weight == 1).all():
        return colour
    goal = _goals(edges, colours)
    by_item = np.argsort(edges.item, kind="stable").astype(np.int32)
    start = np.searchsorted(edges.item[by_item], np.arange(items + 1)).astype(np.int32)
    ends, offsets, lists = [], [], []
    for end in (edges.tail, edges.head):
        order = np.argsort(end, kind="stable").astype(np.int32)
        ends.append(end)
        lists.append(order)
        offsets.append(np.searchsorted(end[order], np.arange(goal.shape[1] + 1)).astype(np.int32))
    _chains(
        np.stack(ends), np.stack(lists), np.stack(offsets), edges.item, edges.weight,
        by_item, start, goal, colours, of_item, CHAINS,
    )  # fmt: skip
    chosen_colour: I32 = of_item[edges.item]
    return chosen_colour


def _goals(edges: Edges, colours: int) -> I32:
    """int32[2, nodes]: for each end, the least possible number of flows of one colour at a node."""
    nodes = int(max(edges.tail.max(), edges.head.max())) + 1
    goal = np.ones((2, nodes), np.int32)
    for side, end in enumerate((edges.tail, edges.head)):
        flows = np.bincount(end, edges.weight, nodes).astype(np.int64)
        goal[side] = np.maximum(1, -(-flows // colours))
        np.maximum.at(goal[side], end, edges.weight)
    return goal


@kernel
def _chains(
    ends: I32, lists: I32, offsets: I32, item: I32, weight: I32, by_item: I32, start: I32,
    goal: I32, colours: int, colour: I32, budget: int,
) -> None:  # pragma: no cover  # fmt: skip
    """Improves `colour` int32[items] in place."""
    nodes = np.uint32(goal.shape[1])
    load = np.zeros((2, nodes, colours), np.int32)
    for e in range(np.uint32(len(item))):
        for s in range(np.uint32(2)):
            load[s, np.uint32(ends[s, e]), np.uint32(colour[item[e]])] += weight[e]
    # Crowded (side, node, colour); some of them may not be crowded any more.
    crowd = np.empty((2 * nodes * colours, 3), np.int32)
    crowds, excess = _crowded(load, goal, crowd)
    best, best_excess = colour.copy(), excess
    moved = np.zeros(len(colour), np.bool_)
    trail = np.empty((len(colour), 2), np.int32)
    state = np.uint64(88172645463325252)
    idle = 0
    for _ in range(budget):
        idle += 1
        if crowds == 0:
            crowds, excess = _crowded(load, goal, crowd)
        if best_excess == 0 or crowds == 0 or idle > IDLE:
            break
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        at = np.int64(state % np.uint64(crowds))
        side, node, a = np.int64(crowd[at, 0]), np.int64(crowd[at, 1]), np.int64(crowd[at, 2])
        if load[side, node, a] <= goal[side, node]:
            crowds -= 1
            crowd[at, :] = crowd[crowds, :]
            continue
        # The next colour with room, from a random one on.
        b = np.int64((state >> np.uint64(20)) % np.uint64(colours))
        for _k in range(colours):
            if load[side, node, b] < goal[side, node]:
                break
            b = (b + 1) % colours
        if load[side, node, b] >= goal[side, node]:
            # Heavy edges: no colour has room, so any other may do.
            other = np.int64((state >> np.uint64(40)) % np.uint64(max(1, colours - 1)))
            b = (a + 1 + other) % colours
        if a == b:
            break
        before, steps, frm, to = excess, 0, a, b
        while steps < len(trail):
            first, size = offsets[side, node], offsets[side, node + 1] - offsets[side, node]
            chosen = -1
            for k in range(size):
                e = lists[side, first + (k + np.int64(state >> np.uint64(33))) % size]
                if colour[item[e]] == frm and not moved[item[e]]:
                    chosen = e
                    break
            if chosen < 0:
                break
            i = item[chosen]
            moved[i] = True
            trail[steps, 0], trail[steps, 1] = i, frm
            steps += 1
            excess += _move(i, frm, to, ends, item, weight, by_item, start, goal, load, colour)
            side = 1 - side
            node = np.int64(ends[side, chosen])
            if load[side, node, to] <= goal[side, node]:
                break
            frm, to = to, frm
        # Equally good states are kept, too, and now and then a worse one: else the search would
        # stall.
        worse = excess > before and (state >> np.uint64(50)) % np.uint64(64) != 0
        for k in range(steps):
            i, old = trail[k, 0], trail[k, 1]
            moved[i] = False
            if worse:
                excess += _move(
                    i, colour[i], old, ends, item, weight, by_item, start, goal, load, colour
                )
        if not worse:
            for k in range(steps):
                i = trail[k, 0]
                for p in range(start[i], start[i + 1]):
                    e = by_item[p]
                    for s in range(2):
                        n = ends[s, e]
                        if load[s, n, colour[i]] > goal[s, n] and crowds < len(crowd):
                            crowd[crowds, 0], crowd[crowds, 1], crowd[crowds, 2] = s, n, colour[i]
                            crowds += 1
        if excess < best_excess:
            best_excess, idle = excess, 0
            best[:] = colour
    colour[:] = best


@kernel_part
def _crowded(load: I32, goal: I32, crowd: I32) -> tuple[int, int]:  # pragma: no cover
    """Fills `crowd`; returns (how many rows it filled, flows above the goals)."""
    crowds, excess = 0, 0
    for side in range(load.shape[0]):
        for node in range(load.shape[1]):
            for c in range(load.shape[2]):
                over = load[side, node, c] - goal[side, node]
                if over > 0:
                    excess += over
                    crowd[crowds, 0], crowd[crowds, 1], crowd[crowds, 2] = side, node, c
                    crowds += 1
    return crowds, excess


@kernel_part
def _move(
    i: Whole, frm: Whole, to: Whole, ends: I32, item: I32, weight: I32, by_item: I32, start: I32,
    goal: I32, load: I32, colour: I32,
) -> int:  # pragma: no cover  # fmt: skip
    """Moves item i from one colour to another; returns by how much the excess grows."""
    grown = 0
    for p in range(start[i], start[i + 1]):
        e = by_item[p]
        for side in range(2):
            node = ends[side, e]
            most = goal[side, node]
            was = load[side, node, frm]
            load[side, node, frm] = was - weight[e]
            grown += max(0, was - weight[e] - most) - max(0, was - most)
            was = load[side, node, to]
            load[side, node, to] = was + weight[e]
            grown += max(0, was + weight[e] - most) - max(0, was - most)
    colour[i] = to
    return grown
