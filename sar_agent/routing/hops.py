"""Hops between all pairs of switches: breadth-first search for 512 roots at a time.

One bit per root: a switch is reached by the roots that any neighbour was reached by one hop
before. A cache line of bits a switch, or-ed along 46,656 channels, four times for each of four
batches: all 1,620 searches of an 11,664-host tree together take as long as 50 with queues.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import U8
from sar_agent.routing.dag import Graph

FAR = 255
"""No way there."""
WORDS = 8


def _places() -> NDArray[np.uint32]:
    found = np.zeros(64, np.uint32)
    for place in range(64):
        found[((1 << place) * _DE_BRUIJN % (1 << 64)) >> 58] = place
    return found


_DE_BRUIJN = 0x03F79D71B4CB0A89
"""Times a power of two, its top six bits tell which one it was."""
_PLACES = _places()


@njit(cache=True)
def all_hops(graph: Graph) -> U8:  # pragma: no cover
    """uint8[S, S]: hops between two switches over live cables, `FAR` where there is no way.

    Cables have both directions or neither, so the matrix is symmetric.
    """
    switches = len(graph.offset) - 1
    hops = np.full((switches, switches), FAR, np.uint8)
    seen = np.empty((switches, WORDS), np.uint64)
    now = np.empty((switches, WORDS), np.uint64)
    after = np.empty((switches, WORDS), np.uint64)
    one = np.uint64(1)
    magic = np.uint64(_DE_BRUIJN)
    for first in range(0, switches, 64 * WORDS):
        now[:] = 0
        for root in range(first, min(first + 64 * WORDS, switches)):
            bit = np.uint64(root - first)
            now[root, bit >> np.uint64(6)] |= one << (bit & np.uint64(63))
            hops[root, root] = 0
        seen[:] = now
        level = 0
        moved = True
        while moved and level < FAR - 1:
            level += 1
            moved = False
            for v in range(switches):
                reached = after[v]
                reached[:] = 0
                for c in range(graph.offset[v], graph.offset[v + 1]):
                    if graph.up[c]:
                        from_there = now[graph.target[c]]
                        for word in range(WORDS):
                            reached[word] |= from_there[word]
            for v in range(switches):
                row = hops[v]
                for word in range(WORDS):
                    bits = after[v, word] & ~seen[v, word]
                    now[v, word] = bits
                    seen[v, word] |= bits
                    moved |= bits != 0
                    base = np.uint32(first + 64 * word)
                    while bits:
                        lowest = bits & (~bits + one)
                        row[base + _PLACES[(lowest * magic) >> np.uint64(58)]] = level
                        bits ^= lowest
    return hops
