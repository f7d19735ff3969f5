"""Each path goes into the first lane in which its dependencies close no cycle (LASH's layers).

A path is one (source switch, destination). Whole destinations are too coarse: on Dragonflies and
tori most of them would fit no lane. A tree is followed from its root outward over the switches that
unplaced sources need: a switch fits the lane if the next switch on its path fits and if its own
dependency is allowed. O(S) for each destination and lane, and one insertion for each dependency.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import U8, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.two_way_search import LaneOrder, judge
from sar_agent.util.kernels import kernel

UNPLACED = 255
FITS, DOES_NOT, NOWHERE, BUSY = 0, 1, 2, 3


class TreeWalk(NamedTuple):
    """Scratch to follow one tree at a time."""

    known: U32
    """uint32[S]: the number of the last tree in which the switch was judged."""
    verdict: U8
    """uint8[S]: `FITS`, `DOES_NOT`, `NOWHERE` (its path never ends) or `BUSY` (being followed)."""
    via: U32
    """uint32[S]: the channel that the switch takes."""
    stack: U32
    """uint32[S]"""


def new_walk(switches: int) -> TreeWalk:
    """Scratch that no walk has used; trees are numbered from 1."""
    return TreeWalk(
        np.zeros(switches, np.uint32),
        np.empty(switches, np.uint8),
        np.empty(switches, np.uint32),
        np.empty(switches, np.uint32),
    )


@kernel
def place_paths(
    net: ChannelGraph,
    lane: LaneOrder,
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
    """Gives the lane's `number` to the paths that fit it; returns how many do not fit.

    `trees` uint8[R, S], `root` uint32[R]; `rows` uint32[·] and `sources` uint32[·] come in the
    order in which they are tried. `level` uint8[R, S] receives the number; only paths that are
    `UNPLACED` there and `wanted` in `was` uint8[R, S] are tried. A path that never arrives fits
    everywhere.
    """
    # A path is followed inside this one function: numba counts references of the some twenty arrays
    # that a call hands on, which takes 450 ns a path, where following it takes 12.
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
            state = verdict[v]
            if state == BUSY:  # a dead end, or a forwarding loop
                state = np.uint8(NOWHERE)
            while depth:
                depth -= one
                w = v
                v = stack[depth]
                if state == FITS and w != end:
                    known_edge = depends[via[v], via[w] - offset[w]]
                    if known_edge != PRESENT and (known_edge or not judge(lane, via[v], via[w])):
                        state = np.uint8(DOES_NOT)
                verdict[v] = state
            if state == DOES_NOT:
                left += 1
            else:
                level[row, source] = number
    return left
