"""Hops between all pairs of switches: breadth-first search from all of them at once.

One bit per root: a switch is reached by the roots that any neighbour was reached by one hop
before. A row of bits a switch, or-ed along every channel once a hop: all 1,620 searches of an
11,664-host tree together take as long as 10 with queues.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.fabric.model import U8, U64
from sar_agent.routing.graph.csr import Graph

FAR = 255
"""No way there."""
_BYTES: U64 = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    .view("<u8")
    .ravel()
    .astype(np.uint64)
)
"""uint64[256]: each bit of a byte as a byte of its own."""


@njit(cache=True)
def all_hops(graph: Graph) -> U8:  # pragma: no cover
    """uint8[S, S]: hops between two switches over live cables, `FAR` where there is no way.

    Cables have both directions or neither, so the matrix is symmetric.
    """
    one = np.uint32(1)
    switches = np.uint32(len(graph.offset) - 1)
    words = (switches + np.uint32(63)) // np.uint32(64)
    hops = np.full((switches, np.uint32(64) * words), FAR, np.uint8)
    eight = hops.view(np.uint64)
    now = np.zeros((switches, words), np.uint64)
    for root in range(switches):
        now[root, root // np.uint32(64)] = np.uint64(1) << np.uint64(root % np.uint32(64))
        hops[root, root] = 0
    seen = now.copy()
    reached = np.empty_like(now)
    level = 0
    moved = True
    while moved and level < FAR - 1:
        level += 1
        moved = False
        for v in range(switches):
            row = reached[v]
            row[:] = 0
            for c in range(graph.offset[v], graph.offset[v + one]):
                if graph.up[c]:
                    row |= now[graph.target[c]]
        nearer = np.uint64(FAR - level)
        for v in range(switches):
            at = np.uint32(0)
            for word in range(words):
                bits = reached[v, word] & ~seen[v, word]
                now[v, word] = bits
                seen[v, word] |= bits
                moved |= bits != 0
                for byte in range(np.uint32(8) if bits else np.uint32(0)):
                    # Eight roots at once: `FAR` becomes the level where there is a bit.
                    eight[v, at + byte] -= nearer * _BYTES[bits & np.uint64(255)]
                    bits >>= np.uint64(8)
                at += np.uint32(8)
    return hops[:, :switches].copy()
