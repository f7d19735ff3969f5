"""Which trees cross the most loaded channels, and which of their sources are moved elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.channel_loads import ChannelLoads, add
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph


class SourcesToMove(NamedTuple):
    """Which sources of some trees are placed; the others keep their paths. Empty: all are
    placed."""

    offset: U32
    """uint32[trees + 1] into `source`."""
    source: Bool
    """bool[·]: the sources of each tree, in the order of its jobs' leaves."""


def all_moved() -> SourcesToMove:
    """All sources: whole trees are placed."""
    return SourcesToMove(np.empty(0, np.uint32), np.empty(0, np.bool_))


@njit(cache=True)
def lift_hot(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    egress: U8,
    dests: U32,
    hot: Bool,
) -> SourcesToMove:  # pragma: no cover
    """Removes the load of sources whose paths cross a channel of `hot` bool[C].

    A source that shares a hop with such a path also shares the hot channel behind it, so the other
    paths are still a tree. O(items · hops).
    """
    offset = np.zeros(len(dests) + 1, np.uint32)
    for n in range(len(dests)):
        d = dests[n]
        offset[n + 1] = offset[n]
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            offset[n + 1] += work.leaf_offset[job + 1] - work.leaf_offset[job]
    source = np.zeros(offset[-1], np.bool_)
    for n in range(len(dests)):
        d = dests[n]
        root, tree = work.root[d], egress[d]
        k = offset[n]
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                v = work.leaf[i]
                while v != root:
                    c = by_port[v, tree[v]]
                    if c >= len(hot):
                        break  # a leaf that is cut off
                    source[k] |= hot[c]
                    v = graph.target[c]
                if source[k]:
                    v = work.leaf[i]
                    while v != root:
                        c = by_port[v, tree[v]]
                        if c >= len(hot):
                            break
                        add(loads, work.weight_class[job], c, -work.item[i])
                        v = graph.target[c]
                k += np.uint32(1)
    return SourcesToMove(offset, source)


@njit(cache=True)
def trees_over(
    graph: Graph, by_port: U32, work: DemandItems, egress: U8, dests: U32, hot: U32, source: U32
) -> Bool:  # pragma: no cover
    """bool[len(dests)]: which of `dests` have a job path over one of the channels `hot`, whose
    sources are the switches `source`."""
    crosses = np.zeros(len(dests), np.bool_)
    is_hot = np.zeros(len(graph.target) + 1, np.bool_)
    is_hot[hot] = True
    channels = len(graph.target)
    for n in range(len(dests)):
        d = dests[n]
        tree, root = egress[d], work.root[d]
        # Few rows have a hot channel at all: that is one read a channel, before any walk.
        maybe = False
        for h in range(len(hot)):
            v = source[h]
            if tree[v] == graph.port[hot[h]] and v != root:
                maybe = True
                break
        if not maybe:
            continue
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                v = work.leaf[i]
                hops = 0
                while v != root and hops < len(tree):
                    c = by_port[v, tree[v]]
                    if c >= channels:
                        break
                    crosses[n] |= is_hot[c]
                    v = graph.target[c]
                    hops += 1
    return crosses
