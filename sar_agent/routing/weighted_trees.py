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

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import DagCache, new_cache
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.one_lane import with_fewest_lanes
from sar_agent.routing.repair import neighbours_of
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar_plus_balance import RouteBalance
from sar_agent.routing.siblings import ALONE, Siblings, siblings_of
from sar_agent.routing.visit_order import VisitOrders, new_visit_orders, visit_order_of

EVERYONE, JOB = 0, 1

HOP = np.int64(1 << 48)
"""A price is hops << 48 | weight of the path << 8 | port. So hops decide first, as in OpenSM, whose
weights start that high; then weights; then the lowest port, which the price itself contains."""
TOO_FAR = np.int64(1 << 61)
WITHOUT_PORT = np.int64(-256)
PARTS = 16
"""How many times a caller that may stop the growing is asked."""


class SendingTerminals(NamedTuple):
    """The terminals that send, and their jobs: arrays of a `JobMix` on a `Fabric`."""

    terminal_switch: U32
    """uint32[T]"""
    at_switch: U32
    """uint32[S]: live host ports of each switch."""
    job_offset: U32
    """uint32[J + 1] into `job_terminal`: the terminals of each job."""
    job_terminal: U32
    leaf_offset: U32
    """uint32[J + 1] into `leaf`, `leaf_count`: the same jobs by leaf switch."""
    leaf: U32
    leaf_count: U32
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
        *mix.by_leaf(fabric),
        *mix.by_terminal(fabric.terminals),
    )
    return SendingTerminals(*(array.astype(np.uint32) for array in arrays))


def grow_trees(fabric: Fabric, mix: JobMix, order: I32, count: U8) -> tuple[U8, float]:
    """uint8[T + S, S] egress ports, and the seconds it took (the first call in a process
    also loads the compiled kernels).

    `order` int32[·]: terminals, in the order in which their trees grow; `count` uint8[·]: the
    routes that then raise the weights. Routes to the switches' own LIDs are chosen after them.
    Terminals that are not in `order` (their link is down, or they are aggregation units) get the
    route to their switch.
    """
    began = time.perf_counter()
    graph = graph_of(fabric)
    hops = all_hops(graph)

    def grown(cache: DagCache) -> tuple[U8, Callable[[], float], U8]:
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        weight = np.zeros(fabric.channels, np.int64)
        grow(fabric, graph, cache, hops, mix, order, count, weight, egress)

        def largest() -> float:
            if not mix.jobs:
                return float(weight.max(initial=0))
            balance = RouteBalance(fabric, mix, egress, "load")
            balance.put_back(balance.terminals)
            return balance.score()[0]

        return egress, largest, egress

    egress, found, _ = with_fewest_lanes(fabric, graph, hops, grown)
    fill_loop_free(fabric, graph, new_cache(fabric), hops, egress, found)
    return egress, time.perf_counter() - began


def grow(
    fabric: Fabric,
    graph: Graph,
    cache: DagCache,
    hops: U8,
    mix: JobMix,
    order: I32 | U32,
    count: U8,
    weight: I64,
    egress: U8,
    hopeless: Callable[[U32], bool] | None = None,
) -> bool:
    """Grows these trees as `grow_trees` does, into `egress` uint8[T + S, S], starting from `weight`
    int64[C], by the shortest paths that `cache` keeps; `hops` uint8[S, S] are those between
    switches. With `hopeless`, it is called after each sixteenth of the trees, with their terminals:
    where it returns true, no more trees grow. Returns whether all have grown."""
    siblings = siblings_of(fabric, graph)
    if len(cache.place):
        siblings = siblings._replace(group=np.full_like(siblings.group, ALONE))
    priced = np.full(len(siblings.port), TOO_FAR, np.int64)
    priced[siblings.place] = HOP + (weight << 8) + graph.port
    orders = new_visit_orders(graph, siblings)
    sources, neighbours = sources_of(fabric, mix), neighbours_of(fabric)
    by_port, order = fabric.channel_by_port.astype(np.uint32), order.astype(np.uint32)
    for part in np.array_split(np.arange(len(order)), PARTS if hopeless else 1):
        _grow(
            graph,
            cache,
            siblings,
            orders,
            hops,
            sources,
            neighbours,
            by_port,
            order[part],
            count[part],
            fabric.destination_port,
            priced,
            egress,
        )
        if hopeless and hopeless(order[part]):
            return False
    return True


@njit(cache=True)
def _grow(
    graph: Graph,
    cache: DagCache,
    siblings: Siblings,
    orders: VisitOrders,
    hops: U8,
    sources: SendingTerminals,
    neighbours: U32,
    by_port: U32,
    order: U32,
    count: U8,
    last_port: U8,
    weight: I64,
    egress: U8,
) -> None:  # pragma: no cover
    """`weight` int64[places]: HOP | weight << 8 | port of each channel, `TOO_FAR` where a sibling
    lacks the channel."""
    one = np.uint32(1)
    switches = len(graph.offset) - 1
    price = np.empty(switches, np.int64)
    side = np.empty(switches, np.int64)
    load = np.zeros(switches, np.int64)
    sends = sources.at_switch > 0
    busy = np.empty_like(sends)
    seen = np.full(len(sources.terminal_switch), -1, np.int32)
    model = np.uint32(0)  # the destination whose tree can be copied while `fresh`
    fresh = False
    for turn in range(len(order)):
        d = order[turn]
        root = sources.terminal_switch[d]
        silent = count[turn] == JOB and sources.on_offset[d] == sources.on_offset[d + one]
        if silent and fresh and sources.terminal_switch[model] == root:
            # The same leaf, and no weight has changed since: the same tree but for its last hop.
            egress[d] = egress[model]
            egress[d, root] = last_port[d]
            continue
        at = visit_order_of(graph, cache, siblings, orders, hops[root], sources.at_switch, root)
        size = orders.arena[at]
        visits = orders.arena[at + one : at + one + size]
        script = orders.arena[at + one + size :]
        price[:] = TOO_FAR
        price[root] = 0
        _price(graph, siblings, visits, script, weight, price, side)
        if count[turn] == EVERYONE:
            load[:] = sources.at_switch
        else:
            _load_of_jobs(sources, d, seen, load)
        busy[:] = sends
        model = d
        fresh = True
        tree = egress[d]
        for back in range(size):
            step = visits[size - one - back]
            v = step >> np.uint32(8)
            # Half of the switches above are on no path, which a branch would mispredict: no branch.
            passed = busy[v]
            port = np.uint8(price[v] if passed else step)
            w = neighbours[v, port]
            busy[w] |= passed
            tree[v] = port
            if load[v] > 0:
                fresh = False
                weight[siblings.place[by_port[v, port]]] += load[v] << 8
                load[w] += load[v]
                load[v] = 0
        load[root] = 0
        tree[root] = last_port[d]


@njit(cache=True)
def _price(
    graph: Graph,
    siblings: Siblings,
    visits: U32,
    script: U32,
    weight: I64,
    price: I64,
    least: I64,
) -> None:  # pragma: no cover
    """Writes the least price of every switch of a visit order into `price` int64[S], in which the
    root's is 0 and all others are `TOO_FAR`; `least` int64[S] is scratch."""
    one, two = np.uint32(1), np.uint32(2)
    i = s = np.uint32(0)
    while i < len(visits):
        group, run, ways = script[s], visits[i : i + script[s + one]], script[s + two]
        s += np.uint32(3)
        i += np.uint32(len(run))
        if group == ALONE:
            for step in run:
                best = TOO_FAR
                for _ in range(ways):
                    above = price[script[s]] & WITHOUT_PORT
                    best = min(best, above + weight[script[s + one]])
                    s += two
                price[step >> np.uint32(8)] = best
            continue
        size = siblings.size[group]
        at = siblings.first[group]
        least[:size] = TOO_FAR
        for k in range(siblings.slot[group], siblings.slot[group + one]):
            above = price[siblings.target[k]] & WITHOUT_PORT
            for lane in range(size):
                least[lane] = min(least[lane], above + weight[at + lane])
            at += size
        for step in run:
            v = step >> np.uint32(8)
            price[v] = least[siblings.lane[v]]


@njit(cache=True)
def _load_of_jobs(
    sources: SendingTerminals, d: int, seen: I32, load: I64
) -> None:  # pragma: no cover
    """Adds to the load of each switch how many of its terminals share a job with `d`, each once.

    `d` itself counts at its own leaf, from which no channel follows.
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
