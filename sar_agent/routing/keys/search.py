"""Keys on trees that are no XGFT (parallel, uneven or broken cables), by negotiated congestion.

L. McMurchie and C. Ebeling, "PathFinder: a negotiation-based performance-driven router for FPGAs",
FPGA 1995. Every flow takes the cheapest of its shortest Up*/Down* paths
(`routing/updown_paths.py`). Where more flows share a link than must, those of the hosts concerned
are removed and routed again, at prices that rise on links that were crowded before. The budget is a
number of rounds, not of seconds: each costs O(S + C) for every flow at the worst. The load of other
jobs breaks ties: a job's own flows count first, as in the paper.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I32, I64, U32
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.keys.key_tree import KeyTree
from sar_agent.routing.updown_paths import Orientation, RootDistances, legal_row, new_row
from sar_agent.util.kernels import kernel

ROUNDS = 40


def search(tree: KeyTree, source: I32, destination: I32, phase: I32, others: F64) -> I32:
    """int32[N, hops]: the channels of each flow in the order of travel, then -1; `others`
    float64[C] is the load of other jobs on each channel."""
    fabric = tree.fabric
    graph, legal = tree.legal
    leaf = fabric.terminal_switch
    # Hosts leaf by leaf, so that a root's distances are best_way once a round.
    hosts, host = np.unique(destination, return_inverse=True)
    by_leaf = np.argsort(leaf[hosts], kind="stable")
    place = np.empty_like(by_leaf)
    place[by_leaf] = np.arange(len(hosts))
    order = np.argsort(place[host], kind="stable").astype(np.int32)
    phases = int(phase.max(initial=0)) + 1
    ups = np.maximum(1, np.bincount(fabric.channel_source[fabric.channel_up], minlength=1))
    least = np.ones(phases, np.int64)
    for end in (leaf[source], leaf[destination]):
        cell, count = np.unique(phase.astype(np.int64) * fabric.switches + end, return_counts=True)
        np.maximum.at(least, cell // fabric.switches, -(-count // ups[cell % fabric.switches]))
    best_way = np.full((len(source), 2 * fabric.switches), -1, np.int32)
    _negotiate(
        graph, legal, new_row(fabric), leaf[hosts[by_leaf]].astype(np.uint32),
        leaf[source[order]].astype(np.uint32), place[host][order].astype(np.uint32),
        phase[order].astype(np.uint32), least, others / (1.0 + 16.0 * float(others.max(initial=0))),
        fabric.channels, ROUNDS, best_way,
    )  # fmt: skip
    hops = int((best_way >= 0).sum(axis=1).max(initial=1))
    channels = np.empty((len(source), hops), np.int32)
    channels[order] = best_way[:, :hops]
    return channels


@kernel
def _negotiate(
    graph: Graph, legal: Orientation, row: RootDistances, root_of: U32, start: U32, host: U32,
    phase: U32,
    least: I64, others: F64, channels: int, rounds: int, best_way: I32,
) -> None:  # pragma: no cover  # fmt: skip
    """Flows are sorted by `host`; fills `best_way`."""
    hosts, switches, flows = len(root_of), len(row.distance), np.uint32(len(start))
    load = np.zeros((len(least), channels), np.int32)
    past = np.zeros((len(least), channels))
    via = np.full((hosts, switches), -1, np.int32)
    cost, best_hop = np.empty(switches), np.empty(switches, np.int32)
    way = np.full(best_way.shape, -1, np.int32)
    best, best_total = np.inf, np.inf
    one = np.uint32(1)
    for turn in range(rounds):
        previous = np.int64(-1)
        first = np.uint32(0)
        while first < flows:
            h = host[first]
            last = first
            crowded = turn == 0
            while last < flows and host[last] == h:
                for c in way[last]:
                    if c < 0:
                        break
                    crowded |= load[phase[last], np.uint32(c)] > least[phase[last]]
                last += one
            if crowded:
                for f in range(first, last):
                    for k in range(best_way.shape[1]):
                        if way[f, k] < 0:
                            break
                        load[phase[f], np.uint32(way[f, k])] -= 1
                        way[f, k] = -1
                via[h, :] = -1
                root = root_of[h]
                if previous != root:
                    legal_row(graph, legal, row, root)
                    previous = np.int64(root)
                for f in range(first, last):
                    p = phase[f]
                    cost[row.order[0]] = 0.0
                    for i in range(one, row.size[0]):
                        v = row.order[i]
                        cost[v] = np.inf
                        for e in range(row.start[i], row.start[i + one]):
                            c = row.edge[e]
                            if via[h, v] >= 0 and via[h, v] != c:
                                continue
                            over = max(0, load[p, c] + 1 - least[p])
                            price = (0.01 + past[p, c] + over) * (1.0 + over) + others[c]
                            price += 0.001 * load[p, c] + cost[graph.target[c]]
                            if price < cost[v]:
                                cost[v] = price
                                best_hop[v] = c
                    at = start[f]
                    k = 0
                    while at != root:
                        c = np.uint32(best_hop[at])
                        via[h, at] = c
                        load[p, c] += 1
                        way[f, k] = c
                        k += 1
                        at = graph.target[c]
            first = last
        excess, total = 0.0, 0.0
        for p in range(len(least)):
            for c in range(channels):
                if load[p, c] > least[p]:
                    excess += (load[p, c] - least[p]) ** 2
                    past[p, c] += 0.5
                if load[p, c]:
                    total = max(total, others[c])
        if excess < best or (excess == best and total < best_total):
            best, best_total = excess, total
            best_way[:] = way
        if excess == 0:
            break
