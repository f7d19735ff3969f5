"""The kernel that grows one tree per destination over its minimal-hop DAG by channel weights.

DFSSSP and SAR are the same walk; they differ in the order of destinations and in whose routes
raise the weights (sar-2016, Algorithm 1). `count` says so per destination:

`EVERYONE`  +1 per terminal's route (DFSSSP, and SAR's lines 11-16); `JOB`  +1 per route from a
terminal that shares a job with the destination (lines 8-10).

Routes no terminal's packets take (a spine's own way to a host it lost its cable to, and every
route to a switch's own LID) are chosen by lowest neighbour GUID instead of weight, so that they
fall together, and are then settled around the others (`settle.py`).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.jobs import JobMix
from sar_agent.routing.dag import U32, DagCache, Graph, dag_row, graph_of, new_cache
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.settle import settle

EVERYONE, JOB = 0, 1


class Sources(NamedTuple):
    """Who sends: arrays of a `JobMix` on a `Fabric` that the kernel reads."""

    terminal_switch: U32
    """uint32[T]"""
    at_switch: U32
    """uint32[S], live host ports of each switch."""
    job_offset: U32
    """uint32[J + 1] into `job_terminal`"""
    job_terminal: U32
    leaf_offset: U32
    """uint32[J + 1] into `leaf`, `leaf_count`: the same jobs by leaf switch."""
    leaf: U32
    leaf_count: U32
    on_offset: U32
    """uint32[T + 1] into `on_job`: the jobs on each terminal."""
    on_job: U32


def sources_of(fabric: Fabric, mix: JobMix) -> Sources:
    """Collects the arrays."""
    arrays = (
        fabric.terminal_switch,
        fabric.terminals_at,
        mix.offset,
        mix.terminal,
        *mix.by_leaf(fabric),
        *mix.by_terminal(fabric.terminals),
    )
    return Sources(*(array.astype(np.uint32) for array in arrays))


def grow_trees(fabric: Fabric, mix: JobMix, order: I32, count: U8) -> tuple[U8, float]:
    """uint8[T + S, S] egress ports, and the seconds it took (the first call in a process
    also loads the compiled kernels).

    `order` int32[·]: terminals, in the order in which their trees grow; `count` uint8[·]: whose
    routes then raise the weights. The switches' own LIDs are settled after them. Terminals that
    are not in `order` (their link is down, or they are aggregation units) get the route to their
    switch.
    """
    graph = graph_of(fabric)
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    weight = np.zeros(max(1, fabric.channels), np.int64)
    sources = sources_of(fabric, mix)
    began = time.perf_counter()
    cache = new_cache(fabric)
    ports = fabric.destination_port
    grow(graph, cache, sources, order.astype(np.uint32), count, ports, weight, egress)
    settle(fabric, graph, cache, egress)
    return egress, time.perf_counter() - began


@njit(cache=True)
def grow(
    graph: Graph,
    cache: DagCache,
    sources: Sources,
    order: U32,
    count: U8,
    last_port: U8,
    weight: NDArray[np.int64],
    egress: U8,
) -> None:  # pragma: no cover
    """As `grow_trees`, into `egress` and on top of what is in `weight` int64[C]."""
    switches = len(graph.offset) - 1
    terminals = len(sources.terminal_switch)
    cost = np.empty(switches, np.int64)
    load = np.zeros(switches, np.int64)
    via = np.empty(switches, np.uint32)
    busy = np.zeros(switches, np.bool_)
    seen = np.full(terminals, -1, np.int32)
    model = np.uint32(0)  # whose tree this would be again, while `fresh`
    fresh = False
    for turn in range(len(order)):
        d = order[turn]
        root = sources.terminal_switch[d]
        silent = count[turn] == JOB and sources.on_offset[d] == sources.on_offset[d + 1]
        if silent and fresh and sources.terminal_switch[model] == root:
            # The same leaf, and no weight has changed since: the same tree but for its last hop.
            egress[d] = egress[model]
            egress[d, root] = last_port[d]
            continue
        row = dag_row(graph, cache, root)
        size, by_hop = cache.size[row], cache.order[row]
        start, edge, lowest = cache.start[row], cache.edge[row], cache.lowest[row]
        cost[root] = 0
        for i in range(1, size):
            v = by_hop[i]
            best_channel = edge[start[i]]
            best = cost[graph.target[best_channel]] + weight[best_channel]
            for e in range(start[i] + 1, start[i + 1]):
                c = edge[e]
                price = cost[graph.target[c]] + weight[c]
                if price < best:
                    best = price
                    best_channel = c
            cost[v] = best
            via[v] = best_channel
        if count[turn] == EVERYONE:
            load[:] = sources.at_switch
        else:
            _load_of_jobs(sources, d, seen, load)
        busy[:] = sources.at_switch > 0
        model = d
        fresh = True
        tree = egress[d]
        for i in range(size - 1, 0, -1):
            v = by_hop[i]
            if busy[v]:
                c = via[v]
                busy[graph.target[c]] = True
                if load[v] > 0:
                    fresh = False
                    weight[c] += load[v]
                    load[graph.target[c]] += load[v]
            else:
                c = lowest[i]
            load[v] = 0
            tree[v] = graph.port[c]
        load[root] = 0
        tree[root] = last_port[d]


@njit(cache=True)
def _load_of_jobs(
    sources: Sources, d: int, seen: I32, load: NDArray[np.int64]
) -> None:  # pragma: no cover
    """Adds to each switch how many of its terminals share a job with `d`, each once.

    `d` itself counts at its own leaf, where no channel follows.
    """
    first, last = sources.on_offset[d], sources.on_offset[d + 1]
    if last - first == 1:
        job = sources.on_job[first]
        for i in range(sources.leaf_offset[job], sources.leaf_offset[job + 1]):
            load[sources.leaf[i]] += sources.leaf_count[i]
        return
    for i in range(first, last):
        job = sources.on_job[i]
        for k in range(sources.job_offset[job], sources.job_offset[job + 1]):
            terminal = sources.job_terminal[k]
            if seen[terminal] != d:
                seen[terminal] = d
                load[sources.terminal_switch[terminal]] += 1
