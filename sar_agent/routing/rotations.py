"""Where D-mod-k loads some channels twice: each switch begins its turns elsewhere.

By D-mod-k all leaves choose the same spine for a host. Where a leaf's hosts are no multiple of its
ways up (16 hosts and 12 spines, or 12 and 10 after two spines have died), some spines lead to two
hosts of a leaf and others to one: with all messages at once, the channels down from the former
carry twice as much, while those up are even.

If leaf number A adds A times a step to its turns, each spine leads to two hosts of a leaf for some
sources and to one for others, and all channels are even. The step is the greatest common divisor of
a leaf's hosts and its ways up: then the spines with two hosts follow each other without a gap from
leaf to leaf, and a shift keeps its contention, since in each phase a leaf receives from two leaves
at most. Switches of a level whose turns come out even are not rotated.

One job in order on all hosts of `xgft:2;12,24;1,12` without two spines: largest load 1.92 with
D-mod-k and 1.17 rotated, which is the bound, and phase contention 1.94 with both. On
`xgft:2;16,24;1,12` 1.92 and 1.30, and 1.94 with both. Mixes of scattered jobs prefer D-mod-k, so
`sar-plus` tries both.
**Weak spot:** where hosts and ways have no common divisor on three levels, phases suffer more than
loads gain (`xgft:3;8,6,6;1,5,6`).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U64
from sar_agent.fabric.tree import tree_levels
from sar_agent.routing.dmodc import cables_up, dividers
from sar_agent.routing.graph.csr import Graph


def rotations(fabric: Fabric, graph: Graph) -> U64 | None:
    """uint64[S]: what each switch adds to its turns; None where no switch needs it. Raises
    `Unserved` where the fabric is no fat tree."""
    level, pairs = tree_levels(fabric), cables_up(fabric)
    ways = np.bincount(pairs[0], minlength=fabric.switches)
    turns = _hosts_below(fabric, pairs) // dividers(fabric).astype(np.int64)
    uneven = (ways > 1) & (turns % np.maximum(ways, 1) > 0)
    if not uneven.any():
        return None
    rotation = np.zeros(fabric.switches, np.uint64)
    step = np.gcd(turns, ways)
    for each in np.unique(level[uneven]):
        alike = np.flatnonzero(level == each)
        alike = alike[np.argsort(graph.rank[alike])]
        rotation[alike] = np.where(uneven[alike], np.arange(len(alike)) * step[alike], 0)
    return rotation


def _hosts_below(fabric: Fabric, pairs: I64) -> I64:
    """int64[S]: hosts to which a switch leads down."""
    level, leaves = tree_levels(fabric), fabric.leaves
    below = np.zeros((fabric.switches, -(-len(leaves) // 8)), np.uint8)  # a bit for each leaf
    below[leaves, np.arange(len(leaves)) // 8] = 128 >> (np.arange(len(leaves)) % 8)
    for each in range(int(level.max(initial=0))):
        source, target = pairs[:, level[pairs[0]] == each]
        np.bitwise_or.at(below, target, below[source])
    bits = np.unpackbits(below, axis=1, count=len(leaves))
    return bits.astype(np.int64) @ fabric.terminals_at[leaves].astype(np.int64)
