"""Which trees cross the most loaded channels."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel


@kernel
def trees_over(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    hops: U8,
    egress: U8,
    dests: U32,
    hot: Bool,
    sources: U32,
) -> Bool:  # pragma: no cover
    """bool[len(dests)]: which of `dests` have a job path over a channel of `hot` bool[C]; these
    channels leave the switches `sources`. `hops` uint8[S, S] are those between switches.

    Paths are shortest: of a tree that leads over a hot channel, only paths from leaves to which
    that channel's switch is near enough are followed, and only as far as there.
    """
    crosses = np.zeros(len(dests), np.bool_)
    for n in range(len(dests)):
        d = dests[n]
        tree, root = egress[d], work.root[d]
        left = hops[root]
        for v in sources:
            c = by_port[v, tree[v]]
            if v == root or c >= len(hot) or not hot[c]:
                continue
            near = hops[v]
            for q in range(work.on_offset[d], work.on_offset[d + 1]):
                job = work.on_job[q]
                for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                    u = work.leaf[i]
                    if crosses[n] or np.int64(near[u]) + left[v] != left[u]:
                        continue
                    while left[u] > left[v]:
                        c = by_port[u, tree[u]]
                        if c >= len(hot):
                            break  # a leaf that is cut off
                        u = graph.target[c]
                    crosses[n] = u == v
            if crosses[n]:
                break
    return crosses
