"""Hops between all pairs of switches: breadth-first search from all of them at once.

Each root is one bit. A root reaches a switch in k hops if it reached one of its neighbours in
k - 1: one row of bits a switch, or-ed along every channel once a hop. All 1,620 searches of an
11,664-host tree together take as long as 10 with queues. (M. Then et al., "The more the merrier:
efficient multi-source graph traversal", VLDB 2014.)
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U8, U64
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel

FAR = 255
"""Hops where there is no way."""
_BYTES: U64 = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    .view("<u8")
    .ravel()
    .astype(np.uint64)
)
"""uint64[256]: each bit of a byte, spread to a byte of its own."""


@kernel
def all_hops(graph: Graph) -> U8:  # pragma: no cover
    """uint8[S, S]: hops between two switches over live cables, `FAR` where there is no way.

    O(diameter · C · S / 64) words. Cables have both directions or neither, so the matrix is
    symmetric.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> from sar_agent.routing.graph.csr import graph_of
    >>> all_hops(graph_of(load_fabric("torus:5")))[0].tolist()
    [0, 1, 2, 2, 1]
    """
    one = np.uint32(1)
    switches = np.uint32(len(graph.offset) - 1)
    width = (switches + np.uint32(63)) // np.uint32(64)
    hops = np.full((switches, np.uint32(64) * width), FAR, np.uint8)
    eight = hops.view(np.uint64)
    now = np.zeros((switches, width), np.uint64)
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
            for word in range(width):
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
