"""Puts paths into lanes: each path, from a source switch to a destination, into the first lane in
which its dependencies close no cycle.

A path is one (source switch, destination): whole destinations are too coarse; on Dragonflies and
tori most would fit in no lane. A tree is followed from its root outward over the switches that
unplaced sources need: a switch is fine if the next on its path is, and if its own dependency is
allowed; then so are the paths of all sources that are fine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric.model import U8, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.two_way_search import LaneOrder, OrderSearch, judge

UNPLACED = 255
FITS, DOES_NOT, NOWHERE, BUSY = 0, 1, 2, 3


class TreeWalk(NamedTuple):
    """Scratch for following one tree at a time."""

    known: U32
    """uint32[S]: the last tree in which the switch was judged."""
    verdict: U8
    """uint8[S]"""
    via: U32
    """uint32[S]: the channel it takes."""
    stack: U32
    """uint32[S]"""


def new_walk(switches: int) -> TreeWalk:
    """Nothing known; trees are numbered from 1."""
    return TreeWalk(
        np.zeros(switches, np.uint32),
        np.empty(switches, np.uint8),
        np.empty(switches, np.uint32),
        np.empty(switches, np.uint32),
    )


@njit(cache=True)
def place(
    net: ChannelGraph,
    lane: LaneOrder,
    search: OrderSearch,
    walk: TreeWalk,
    trees: U8,
    root: U32,
    rows: U32,
    sources: U32,
    was: U8,
    wanted: int,
    level: U8,
    number: int,
) -> int:  # pragma: no cover
    """Gives `number` to the paths that fit the lane; how many are left that do not.

    `trees` uint8[R, S], `root` uint32[R]; rows uint32[·] and sources uint32[·] in the order in
    which they are tried. `level` uint8[R, S] is what is given, to the `UNPLACED` ones; of these
    only such as have `wanted` in `was` (uint8[R, S]) are looked at. A path that never comes to its
    end fits everywhere.
    """
    # All in one function: to pass arrays, numba counts references, which takes longer than to
    # follow a path.
    known, verdict, via, stack = walk.known, walk.verdict, walk.via, walk.stack
    channel, target, offset, depends = net.channel, net.target, net.offset, lane.depends
    channels, none = np.uint32(len(target)), np.uint8(channel.shape[1] - 1)
    left, one = 0, np.uint32(1)
    known[:] = 0
    tree_number = np.uint32(0)
    for row in rows:
        end = root[row]
        tree_number += one
        known[end], verdict[end] = tree_number, FITS
        for source in sources:
            if level[row, source] != UNPLACED or was[row, source] != wanted:
                continue
            v, depth = source, np.uint32(0)
            while known[v] != tree_number:
                known[v], verdict[v] = tree_number, BUSY
                stack[depth] = v
                depth += one
                port = trees[row, v]
                c = channel[v, port if port < none else none]
                if c >= channels:
                    break
                via[v] = c
                v = target[c]
            found = verdict[v]
            if found == BUSY:  # a dead end, or a circle
                found = np.uint8(NOWHERE)
            while depth:
                depth -= one
                w = v
                v = stack[depth]
                if found == FITS and w != end:
                    state = depends[via[v], via[w] - offset[w]]
                    if state != PRESENT and (state or not judge(net, lane, search, via[v], via[w])):
                        found = np.uint8(DOES_NOT)
                verdict[v] = found
            if found == DOES_NOT:
                left += 1
            else:
                level[row, source] = number
    return left
