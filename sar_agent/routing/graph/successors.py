"""How an algorithm sees a graph: a function that lists the nodes behind a node.

`successors(graph, node, into) -> count` writes the nodes that `node` leads to into the array `into`
and returns how many there are, in O(degree). Algorithms of this folder take such a function as an
argument; numba compiles each algorithm once for each kind of graph, with the function inlined, so
that no call is left in the machine code. Called from Python they run uncompiled, on small graphs:
that is what their examples do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, U8, U32
from sar_agent.util.kernels import kernel_template

Successors = Callable[[Any, np.uint32, U32], np.uint32]
PRESENT = 1
"""The only value of an entry that is an edge."""


class ChannelDependencies(NamedTuple):
    """Which channel a packet may wait for while it holds another: Dally's and Seitz's graph.

    What can follow channel c are the channels that leave the switch that c enters, so an edge is
    (c, rank among those), whatever the number of paths.
    """

    offset: U32
    """uint32[S + 1]"""
    target: U32
    """uint32[C]"""
    depends: U8
    """uint8[C, W], W the most channels that leave a switch: `PRESENT` where there is an edge."""


@kernel_template
def waited_for(graph: ChannelDependencies, node: np.uint32, into: U32) -> np.uint32:
    """Successors in `ChannelDependencies`: the channels that channel `node` waits for.

    >>> into = np.empty(1, np.uint32)
    >>> ring = ChannelDependencies(np.uint32([0, 1, 2]), np.uint32([1, 0]), np.uint8([[1], [0]]))
    >>> into[: waited_for(ring, np.uint32(0), into)].tolist()
    [1]
    """
    head = graph.target[node]
    base = graph.offset[head]
    count = np.uint32(0)
    for rank in range(graph.offset[head + np.uint32(1)] - base):
        if graph.depends[node, rank] == PRESENT:
            into[count] = np.uint32(base + rank)
            count += np.uint32(1)
    return count


class ParentGraph(NamedTuple):
    """A graph in which each node leads to one other at most: a destination's tree, and whatever
    else its forwarding table may hold."""

    parent: I32
    """int32[N]: the node that each leads to; -1 where there is none."""


@kernel_template
def parent_of(graph: ParentGraph, node: np.uint32, into: U32) -> np.uint32:
    """Successors in a `ParentGraph`.

    >>> into = np.empty(1, np.uint32)
    >>> tree = ParentGraph(np.int32([-1, 0]))
    >>> [int(parent_of(tree, node, into)) for node in (0, 1)]
    [0, 1]
    """
    parent = graph.parent[node]
    if parent < 0:
        return np.uint32(0)
    into[0] = parent
    return np.uint32(1)
