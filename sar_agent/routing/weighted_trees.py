"""Trees grown by channel weights, one per destination: the kernel of DFSSSP and SAR.

Both engines grow the same trees; they differ in the order of destinations and in the routes that
raise the weights (sar-2016, Algorithm 1), which `count` selects per destination:

`EVERYONE`  +1 for each terminal's route (DFSSSP, and SAR's lines 11-16)
`JOB`       +1 for each route from a terminal that shares a job with the destination (lines 8-10)

Routes that no terminal's packets take (a spine's own way to a host it lost its cable to, and every
route to a switch's own LID) are chosen by lowest neighbour GUID instead of weight, so that they
coincide, and are then fitted around the others (`loop_free_fill.py`). O(S + C) for each
destination.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.channel_dependencies import close_no_loop, host_dependencies
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.turn_order import turn_order
from sar_agent.routing.updown_property import rise_then_fall
from sar_agent.util.kernels import kernel

EVERYONE, JOB = 0, 1
WORTH = 1.02
"""How many times the largest load of the engine's tables one lane may cost."""


class SendingTerminals(NamedTuple):
    """The terminals that send, and their jobs: arrays of a `JobMix` on a `Fabric`."""

    terminal_switch: U32
    """uint32[T]"""
    at_switch: U32
    """uint32[S]: live host ports of each switch."""
    job_offset: U32
    """uint32[J + 1] into `job_terminal`: the terminals of each job."""
    job_terminal: U32
    on_offset: U32
    """uint32[T + 1] into `on_job`: the jobs on each terminal."""
    on_job: U32


def sources_of(fabric: Fabric, mix: JobMix) -> SendingTerminals:
    """The arrays of this fabric and mix."""
    arrays = (
        fabric.terminal_switch,
        fabric.terminals_at,
        mix.offset,
        mix.terminal,
        *mix.by_terminal(fabric.terminals),
    )
    return SendingTerminals(*(array.astype(np.uint32) for array in arrays))


def grow_trees(fabric: Fabric, mix: JobMix, order: I32, count: U8) -> U8:
    """uint8[T + S, S] egress ports.

    `order` int32[·]: terminals, in the order in which their trees grow; `count` uint8[·]: the
    routes that then raise the weights. Routes to the switches' own LIDs are chosen after them.
    Terminals that are not in `order` (their link is down, or they are aggregation units) get the
    route to their switch.
    """
    return one_lane_trees(fabric, graph_of(fabric), mix, order, count)[0]


def one_lane_trees(
    fabric: Fabric, graph: Graph, mix: JobMix, order: I32, count: U8, *, any_choice: bool = False
) -> tuple[U8, DagCache]:
    """The same, and the paths that were used.

    These are all shortest paths, unless one lane is too few for them and enough for others
    (`turn_order.py`), at most `WORTH` times the load; with `any_choice`, too few for the tables
    that could be chosen among them. A second lane costs service level tables at every port, seconds
    at each install, and half of the buffers.
    """

    def grown(cache: DagCache) -> tuple[U8, I64]:
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        weight = np.zeros(fabric.channels, np.int64)
        grow(fabric, graph, cache, mix, order, count, weight, egress)
        return egress, weight

    def largest(egress: U8, weight: I64) -> float:
        if not mix.jobs:
            return float(weight.max(initial=0))
        loads = JobLoads(fabric, graph, cache, mix, "load")
        loads.carry(egress, loads.terminals)
        return loads.peak()

    cache = new_cache(fabric)
    egress, weight = grown(cache)
    if rise_then_fall(fabric, graph, all_hops(graph), between_hosts=True):
        fill_loop_free(fabric, graph, egress)
        return egress, cache
    depends = host_dependencies(fabric, egress)
    if any_choice or not close_no_loop(fabric, depends):
        place = turn_order(fabric, graph)
        if place is not None:
            others = new_cache(fabric, place)
            other, its_weight = grown(others)
            its_depends = host_dependencies(fabric, other)
            worth = largest(other, its_weight) <= WORTH * largest(egress, weight)
            if worth and close_no_loop(fabric, its_depends):
                egress, depends, cache = other, its_depends, others
    fill_loop_free(fabric, graph, egress, depends)
    return egress, cache


def grow(
    fabric: Fabric,
    graph: Graph,
    cache: DagCache,
    mix: JobMix,
    order: I32 | U32,
    count: U8,
    weight: I64,
    egress: U8,
) -> None:
    """Grows these trees as `grow_trees` does, into `egress` uint8[T + S, S], by the shortest paths
    that `cache` keeps; raises the weights int64[C]."""
    sources = sources_of(fabric, mix)
    order = order.astype(np.uint32)
    _grow(graph, cache, sources, order, count, fabric.destination_port, weight, egress)


@kernel
def _grow(
    graph: Graph,
    cache: DagCache,
    sources: SendingTerminals,
    dests: U32,
    count: U8,
    last_port: U8,
    weight: I64,
    egress: U8,
) -> None:  # pragma: no cover
    target, port, one = graph.target, graph.port, np.uint32(1)
    switches = np.uint32(len(graph.rank))
    price, via = np.empty(switches, np.int64), np.empty(switches, np.uint32)
    routes, passed = np.empty(switches, np.int64), np.empty(switches, np.bool_)
    seen = np.full(len(sources.terminal_switch), -1, np.int64)
    for turn in range(np.uint32(len(dests))):
        d = dests[turn]
        root, tree = sources.terminal_switch[d], egress[d]
        everyone = count[turn] == EVERYONE
        first, last = sources.on_offset[d], sources.on_offset[d + one]
        row = dag_row(graph, cache, root)
        size, order, lowest = cache.size[row], cache.order[row], cache.lowest[row]
        start, edge = cache.start[row], cache.edge[row]
        for v in range(switches):
            passed[v] = sources.at_switch[v] > 0
            routes[v] = sources.at_switch[v] if everyone else 0
        for i in range(first, np.uint32(0) if everyone else last):
            job = sources.on_job[i]
            for k in range(sources.job_offset[job], sources.job_offset[job + one]):
                terminal = sources.job_terminal[k]
                if seen[terminal] != d:
                    seen[terminal] = d
                    routes[sources.terminal_switch[terminal]] += 1
        price[root] = 0
        for i in range(one, size):
            least, best = np.int64(1 << 62), np.uint32(0)
            for e in range(start[i], start[i + one]):
                c = edge[e]
                total = price[target[c]] + weight[c]
                if total < least:  # of equals, the lowest port
                    least, best = total, c
            price[order[i]], via[order[i]] = least, best
        for i in range(size - one, np.uint32(0), np.int64(-1)):
            v = order[i]
            tree[v] = port[lowest[i]]
            if passed[v]:
                c = via[v]
                tree[v], passed[target[c]] = port[c], True
                weight[c] += routes[v]
                routes[target[c]] += routes[v]
        tree[root] = last_port[d]
