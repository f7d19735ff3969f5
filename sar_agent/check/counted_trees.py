"""Proves and counts one destination's tree in one visit to each switch.

This is Kahn's algorithm: switches to which no switch forwards are removed first, and each further
switch once all that forward to it are removed. Where all but the last switch can be removed and no
entry leads nowhere, every switch reaches the destination. No path is followed, so the time does not
depend on the length of paths, and hardly a branch is mispredicted (4 ns a switch; walking with
marks took 20).

The same order carries marks down the tree: which traffic passes a switch, in which lanes. A packet
at a marked switch holds a channel and waits for the next one: a *dependency* (switch, port, port of
the next switch). The number of destinations that need each dependency is counted, not only whether
one does: a plan's certificate weighs channels by it (`install/plan.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U8, U16, U32
from sar_agent.util.kernels import kernel, kernel_part

Counts = NDArray[np.unsignedinteger[Any]]
"""uint16[2 L, S · P · P], uint32 for more than 65,535 destinations: destinations per dependency
(s, p, q) at (s · P + p) · P + q; the first L planes for hosts in each lane, then for others."""


class TreeScratch(NamedTuple):
    """Scratch arrays for one tree at a time, with two more places than switches, for entries that
    lead nowhere and for switches that are down."""

    next: U16
    degree: U16
    queue: U16
    mark: U32


@kernel_part
def scratch_of(wiring: Wiring) -> TreeScratch:  # pragma: no cover
    """Scratch for this wiring, uninitialised."""
    size = wiring.sends.shape[1] + 2
    kind = wiring.root.dtype
    return TreeScratch(
        np.empty(size, kind),
        np.empty(size, kind),
        np.empty(size + 1, kind),
        np.zeros(size, np.uint32),
    )


def empty_counts(wiring: Wiring, destinations: int) -> Counts:
    """Counts of 0, of a type that can count `destinations`, those of all LID offsets together."""
    kind = np.uint16 if destinations < 1 << 16 else np.uint32
    size = wiring.switches * int(wiring.ports) ** 2
    return np.zeros((2 * int(wiring.lanes), size), kind)


@kernel_part
def add_tree(
    wiring: Wiring, row: U8, level: U8, d: int, counts: Counts, scratch: TreeScratch
) -> bool:  # pragma: no cover
    """Counts the dependencies of destination `d`; False where a switch does not
    reach it (the counts are then useless).

    `row` uint8[S] are d's entries; `level` uint8[S] its service levels, or empty in one lane.
    """
    switches = np.uint32(len(row))
    ports = wiring.ports
    following, degree, queue, mark = scratch
    root = wiring.root[d]
    one = np.uint32(1)
    degree[:] = 0
    at = np.uint32(0)
    for s in range(switches):
        port = np.uint32(row[s])
        w = wiring.next[at + (port if port < ports else ports)]
        at += ports + one
        following[s] = w
        degree[w] += one
    # The root's last port leads to no switch; every other entry must lead to one.
    if row[root] != wiring.last[d] or degree[switches] != 1:
        return False
    degree[root] += one
    degree[switches + one] += one

    sends = wiring.sends[wiring.destination_kind[d] - 1]
    for s in range(switches):
        mark[s] = sends[s]
    for s in range(len(level)):
        mark[s] <<= level[s] % wiring.lanes
    taken = np.uint32(0)
    for s in range(switches):
        queue[taken] = s
        taken += np.uint32(degree[s] == 0)
    i = np.uint32(0)
    while i < taken:
        v = queue[i]
        i += one
        w = following[v]
        left = degree[w] - one
        degree[w] = left
        queue[taken] = w
        taken += np.uint32(left == 0)
        passing = mark[v]
        mark[w] |= passing
        if passing:
            dependency = (v * ports + row[v]) * ports + row[w]
            plane = np.uint32(0)
            while passing:
                if passing & one:
                    counts[plane, dependency] += one
                passing >>= one
                plane += one
    return bool(taken == switches - one)


@kernel
def count_trees(wiring: Wiring, egress: U8, level: U8, counts: Counts) -> bool:  # pragma: no cover
    """Counts all destinations of one LID offset, uint8[D, S] (`level` uint8[D, 0] in one lane);
    False as soon as a tree does not reach."""
    scratch = scratch_of(wiring)
    for d in range(len(egress)):
        if wiring.destination_kind[d] and not add_tree(
            wiring, egress[d], level[d], d, counts, scratch
        ):
            return False
    return True
