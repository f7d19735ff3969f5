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

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32, U64
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.one_lane import with_fewest_lanes
from sar_agent.routing.repair import neighbours_of
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.shortest_paths import ShortestPaths
from sar_agent.routing.visit_order import VisitOrders, new_visit_orders, visit_order_of
from sar_agent.util.kernels import kernel, kernel_part

EVERYONE, JOB = 0, 1

NARROW = np.uint32(0x7FFF_FF00)
WIDE = np.uint64(1 << 62)
"""A price is the weight of a path << 8 | port: the least weight first, then the lowest port, which
the price itself contains. Hops need no digit, because each path is compared only with others of as
many hops. A missing channel, and a switch that is not priced yet, costs as much as this, which may
be added up once without an overflow. Four bytes a price make the growing of trees twice as fast;
where the weights of a path could reach `NARROW`, the rest of the trees grow with eight."""
PORT = 255


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
    egress, _ = one_lane_trees(ShortestPaths(fabric), mix, order, count)
    return egress, time.perf_counter() - began


def one_lane_trees(
    shortest: ShortestPaths, mix: JobMix, order: I32, count: U8, *, any_choice: bool = False
) -> tuple[U8, DagCache]:
    """The same, and the paths that were used: fewer than all shortest ones where one lane is enough
    for these (with `any_choice`, whatever is chosen among them)."""
    fabric = shortest.fabric

    def grown(cache: DagCache) -> tuple[U8, Callable[[], float]]:
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        weight = np.zeros(fabric.channels, np.int64)
        grow(shortest, cache, mix, order, count, weight, egress)

        def largest() -> float:
            if not mix.jobs:
                return float(weight.max(initial=0))
            loads = JobLoads(shortest, cache, mix, "load")
            loads.carry(egress, loads.terminals)
            return loads.peak()

        return egress, largest

    egress, found, cache = with_fewest_lanes(shortest, grown, any_choice=any_choice)
    fill_loop_free(shortest, egress, found)
    return egress, cache


def grow(
    shortest: ShortestPaths,
    cache: DagCache,
    mix: JobMix,
    order: I32 | U32,
    count: U8,
    weight: I64,
    egress: U8,
) -> None:
    """Grows these trees as `grow_trees` does, into `egress` uint8[T + S, S], by the shortest paths
    that `cache` keeps. The weights int64[C] that are in `weight` at the start are replaced by those
    at the end."""
    fabric, graph = shortest.fabric, shortest.graph
    heaviest = int(weight.max(initial=0)) << 8 | PORT
    far = WIDE if heaviest >= NARROW else NARROW
    priced = np.full(fabric.channels + 1, far, far.dtype)
    priced[:-1] = (weight << 8) + graph.port
    orders = new_visit_orders(graph)
    sources, ways = sources_of(fabric, mix), _ways_of(fabric)
    order = order.astype(np.uint32)
    done = 0
    while done < len(order):
        done += _grow(
            graph,
            cache,
            orders,
            shortest.hops,
            sources,
            ways,
            order[done:],
            count[done:],
            fabric.destination_port,
            far,
            priced,
            egress,
        )
        if done < len(order):
            priced = np.where(priced == far, WIDE, priced)
            far = WIDE
    weight[:] = priced[:-1] >> 8


def _ways_of(fabric: Fabric) -> U32:
    """uint32[S, ports, 2]: by switch and port, the next switch and the channel, side by side for
    the sake of the cache; without a channel the switch itself and C, which no channel is."""
    near = neighbours_of(fabric)
    channel = np.full_like(near, fabric.channels)
    channel[fabric.channel_source, fabric.channel_port] = np.arange(fabric.channels)
    return np.stack([near, channel], axis=2)


@kernel
def _grow(
    graph: Graph,
    cache: DagCache,
    orders: VisitOrders,
    hops: U8,
    sources: SendingTerminals,
    ways: U32,
    order: U32,
    count: U8,
    last_port: U8,
    far: np.uint32 | np.uint64,
    weight: U32 | U64,
    egress: U8,
) -> int:  # pragma: no cover
    """`weight` [C + 1], of the type of `far`: weight << 8 | port of each channel, then `far`.
    Returns how many of the trees have grown: less than all if a path's price might reach `far`."""
    one = np.uint32(1)
    switches = len(graph.offset) - 1
    price = np.empty(switches, weight.dtype)
    load = np.empty(switches, np.uint32)
    sends = np.empty(switches, np.uint32)
    most = np.uint64(0)
    for v in range(switches):
        sends[v] = 0xFFFF_FFFF if sources.at_switch[v] else 0
        most += np.uint64(sources.at_switch[v]) << np.uint64(8)
    seen = np.full(len(sources.terminal_switch), -1, np.int32)
    heaviest = _heaviest(weight)  # or more; counted again when it may be too much
    model = np.uint32(0)  # the destination whose tree can be copied while `fresh`
    fresh = False
    for turn in range(len(order)):
        d = order[turn]
        root = sources.terminal_switch[d]
        silent = count[turn] == JOB and sources.on_offset[d] == sources.on_offset[d + one]
        if silent and fresh and sources.terminal_switch[model] == root:
            # The same leaf, and no weight has changed since: the same tree but for its last hop.
            _copy(egress[d], egress[model])
            egress[d, root] = last_port[d]
            continue
        at = visit_order_of(graph, cache, orders, hops[root], root)
        size = orders.arena[at]
        visits = orders.arena[at + one : at + one + size]
        script = orders.arena[at + one + size :]
        longest = (
            np.uint64(hops[root, visits[size - one] >> np.uint32(8)]) if size else np.uint64(0)
        )
        if longest * heaviest >= far:
            heaviest = _heaviest(weight)
            if longest * heaviest >= far:
                return turn
        price[:] = far
        price[root] = 0
        _price(visits, script, far, weight, price)
        model = d
        tree = egress[d]
        if count[turn] == EVERYONE:
            fresh = False
            _copy(load, sources.at_switch)
            _choose_and_count(ways, visits, price, load, weight, tree)
        else:
            _copy(load, sends)
            _choose(ways, visits, price, load, tree)
            fresh = not _count_jobs(sources, ways, d, root, seen, far, price, weight)
        heaviest += most
        tree[root] = last_port[d]
    return len(order)


@kernel_part
def _copy(to: U8 | U32, values: U8 | U32) -> None:  # pragma: no cover
    for v in range(len(to)):
        to[v] = values[v]


@kernel_part
def _heaviest(weight: U32 | U64) -> np.uint64:  # pragma: no cover
    found = np.uint64(0)
    for c in range(len(weight) - 1):
        found = max(found, np.uint64(weight[c]))
    return found


@kernel_part
def _price(
    visits: U32, script: U32, far: np.uint32 | np.uint64, weight: U32 | U64, price: U32 | U64
) -> None:  # pragma: no cover
    """Writes the least price of every switch of a visit order into `price` [S], in which the
    root's is 0 and all others are `far`."""
    number = weight.dtype.type
    one, two, s = np.uint32(1), np.uint32(2), np.uint32(0)
    for step in visits:
        best, ways = far, script[s]
        s += one
        for _ in range(ways):
            above = number(price[script[s]] & ~number(PORT))
            best = min(best, number(above + weight[script[s + one]]))
            s += two
        price[step >> np.uint32(8)] = best


@kernel_part
def _choose(
    ways: U32, visits: U32, price: U32 | U64, passed: U32, tree: U8
) -> None:  # pragma: no cover
    """Writes the ports of a tree. `passed` uint32[S] has all bits set where packets begin, then
    where any pass. Half of the switches above are on no path, which a branch would mispredict: no
    branch."""
    one = np.uint32(1)
    for back in range(np.uint32(len(visits))):
        step = visits[np.uint32(len(visits)) - one - np.uint32(back)]
        v = step >> np.uint32(8)
        mask = passed[v]
        port = np.uint8(price[v] & mask | step & ~mask)
        passed[ways[v, port, 0]] |= mask
        tree[v] = port


@kernel_part
def _choose_and_count(
    ways: U32, visits: U32, price: U32 | U64, load: U32, weight: U32 | U64, tree: U8
) -> None:  # pragma: no cover
    """Writes the ports of a tree and adds all its routes to the weights; `load` uint32[S] are the
    terminals of each switch, then the routes that pass."""
    number = weight.dtype.type
    one = np.uint32(1)
    for back in range(np.uint32(len(visits))):
        step = visits[np.uint32(len(visits)) - one - np.uint32(back)]
        v = step >> np.uint32(8)
        routes = load[v]
        mask = np.uint32(0) - np.uint32(routes > 0)
        port = np.uint8(price[v] & mask | step & ~mask)
        weight[ways[v, port, 1]] += number(routes) << number(8)
        load[ways[v, port, 0]] += routes
        tree[v] = port


@kernel_part
def _count_jobs(
    sources: SendingTerminals,
    ways: U32,
    d: int,
    root: int,
    seen: I32,
    far: np.uint32 | np.uint64,
    price: U32 | U64,
    weight: U32 | U64,
) -> bool:  # pragma: no cover
    """Adds to the weights the routes to `d` from all terminals that share a job with it, each once.
    Returns whether any of them leaves its switch."""
    first, last = sources.on_offset[d], sources.on_offset[d + 1]
    any_leaves = False
    if last - first == 1:
        job = sources.on_job[first]
        for i in range(sources.leaf_offset[job], sources.leaf_offset[job + 1]):
            leaf, routes = sources.leaf[i], sources.leaf_count[i]
            any_leaves |= _raise(ways, leaf, root, routes, far, price, weight)
        return any_leaves
    for i in range(first, last):
        job = sources.on_job[i]
        for k in range(sources.job_offset[job], sources.job_offset[job + 1]):
            terminal = sources.job_terminal[k]
            if seen[terminal] != d:
                seen[terminal] = d
                leaf = sources.terminal_switch[terminal]
                any_leaves |= _raise(ways, leaf, root, np.uint32(1), far, price, weight)
    return any_leaves


@kernel_part
def _raise(
    ways: U32,
    v: np.uint32,
    root: int,
    routes: np.uint32,
    far: np.uint32 | np.uint64,
    price: U32 | U64,
    weight: U32 | U64,
) -> bool:  # pragma: no cover
    """Adds routes from `v` along the cheapest path to the root, if it leads over any channel."""
    number = weight.dtype.type
    if v == root or price[v] == far:
        return False
    while v != root:
        port = np.uint8(price[v])
        weight[ways[v, port, 1]] += number(routes) << number(8)
        v = ways[v, port, 0]
    return True
