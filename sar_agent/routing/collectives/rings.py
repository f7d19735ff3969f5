"""Rings apart: on full trees no two messages of rings share a channel.

In one phase a host sends one message and receives one. A message is an edge between the subtrees
that it leaves and enters; the parent by which it leaves is its colour, and it comes down by the
parent of the same place, because a tree has one way down. So level by level, from the leaves up,
edges are coloured properly (`colouring.py`); messages of one parent are a problem of their own at
the next level. Where a subtree has as many parents as it sends messages, each colour appears once,
which is König's theorem: **a full tree always comes to 1**. Messages have destinations of their
own, so the entries that lead them are theirs alone, and any routes can be written. Where a subtree
sends K times as many messages as it has parents, each carries at most K.

The colours that the tables have are the wish, and messages that meet nobody come first, so few
entries change: on 1,728 hosts that Slurm placed ten.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U8, Bool
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.routing.collectives.colouring import proper_colours
from sar_agent.routing.collectives.phase_demand import PhaseDemand


@lru_cache(maxsize=2)
def whole_tree(fabric: Fabric) -> XgftView | None:
    """The view of a tree of which no cable is missing, kept for the next jobs; None for other
    fabrics."""
    try:
        return recognise_xgft(fabric)
    except Unserved:
        return None


def ring_messages(demand: PhaseDemand) -> I64:
    """int64[M]: the items of rings, one for each destination."""
    items = np.flatnonzero(demand.ring)
    _, first = np.unique(demand.destination[items], return_index=True)
    return items[np.sort(first)].astype(np.int64)


def separate_rings(
    fabric: Fabric, view: XgftView, demand: PhaseDemand, running: Bool, egress: U8
) -> None:
    """Changes entries of `egress` uint8[T + S, S] so that rings meet as little as each level
    allows. `running` bool[I]: items whose entries stay where they can."""
    item = ring_messages(demand)
    leaf = demand.leaf[item].astype(np.int64)
    destination = demand.destination[item].astype(np.int64)
    goal = fabric.terminal_switch[destination].astype(np.int64)
    old = running[item]
    place, port = _places(fabric, view)
    at, cell = leaf.copy(), np.zeros(len(item), np.int64)
    for level in range(1, view.height):
        inside = view.inside[level].astype(np.int64)
        cross = inside[leaf] != inside[goal]
        leaf, destination, goal, old = leaf[cross], destination[cross], goal[cross], old[cross]
        at, cell = at[cross], cell[cross]
        if not len(leaf):
            return
        colours = view.w[level]
        wish = place[at, egress[destination, at]]
        assert (wish >= 0).all(), "a message that leaves its subtree downwards"
        _, problem = np.unique(cell, return_inverse=True)
        nodes = int(inside.max()) + 1
        tail, head = problem * nodes + inside[leaf], problem * nodes + inside[goal]
        meets = _times(tail * colours + wish) + _times(head * colours + wish)
        order = np.lexsort((meets, ~old))
        colour = proper_colours(
            tail, head, _copies(tail, head, colours), wish, order, colours, ~old
        )
        assert (colour >= 0).all()
        chosen = port[at, colour]
        egress[destination, at] = chosen
        at = fabric.channel_target[fabric.channel_by_port[at, chosen]].astype(np.int64)
        cell = cell * colours + colour


def _times(keys: I64) -> NDArray[np.intp]:
    """int[M]: how often each key is there."""
    _, of, count = np.unique(keys, return_inverse=True, return_counts=True)
    times: NDArray[np.intp] = count[of]
    return times


def _copies(tail: I64, head: I64, colours: int) -> I64:
    """int64[2, N]: how often a colour must appear at each node."""
    nodes = int(max(tail.max(), head.max())) + 1
    degree = np.stack([np.bincount(end, minlength=nodes) for end in (tail, head)])
    copies: I64 = -(-degree // colours)
    return copies


def _places(fabric: Fabric, view: XgftView) -> tuple[I64, U8]:
    """(int64[S, 256], uint8[S, W]): the colour of each port that leads up, and the port of each
    colour. Parents of one plane have one colour, and planes are in the order of GUIDs."""
    switches = fabric.switches
    plane = np.zeros(switches, np.int64)
    by_guid = np.argsort(np.argsort(fabric.switch_guid))
    place, port = np.full((switches, 256), -1, np.int64), view.up.copy()
    for level in range(1, view.height):
        here = np.flatnonzero(view.level == level)
        width = view.w[level]
        above = view.up[here, :width]
        parent = fabric.channel_target[fabric.channel_by_port[here[:, None], above]]
        name = plane[here][:, None] * width + np.arange(width)
        lowest = np.full(int(name.max()) + 1, switches, np.int64)
        np.minimum.at(lowest, name, by_guid[parent])
        turn = np.argsort(lowest[name], axis=1)
        port[here, :width] = np.take_along_axis(above, turn, axis=1)
        place[here[:, None], port[here, :width]] = np.arange(width)
        plane[parent] = name
    return place, port
