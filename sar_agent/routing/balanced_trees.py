"""Grows the trees of jobs' destinations, one source leaf at a time, at current prices.

In DFSSSP and SAR all sources of a destination choose by the same weights, so they crowd onto the
cheapest links, and the weights rise only when the tree is done. Here a channel's price rises at
once with every item placed on it. For each destination the source leaves of its jobs choose one
after another among shortest paths; hops that earlier leaves fixed bind the later ones, because a
table has one next hop per destination.

*Lazy lower bounds* make a search cost little more than reading its result: O(S + C) for each
destination, then O(hops · ports) for each source. One pass over the shortest-path DAG in hop order
gives each switch the least cost to the destination. While one tree grows, prices on it only rise,
so these costs stay lower bounds. Follow them and add up the true price of the path: if the sum is
no more than the bound, the path is the cheapest; otherwise only the costs of the switches on that
path are computed again. Mostly it is the price of the last hop before the leaf that rises. Where
all paths of a switch enter the leaf from one neighbour (in every tree), that neighbour's rise is
added when the bound is read, and the first path is nearly always right (1.0 to 1.3 tries a source
on trees, instead of 9 to 18 without).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U8, U32
from sar_agent.routing.channel_loads import ChannelLoads, add, carry_tree
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.pending_paths import AGAIN, PathScratch, fix_others, gather
from sar_agent.util.kernels import kernel, kernel_part

SLACK = np.float32(1.001)
"""A path this near its lower bound is taken: a better one would change loads by less than that."""
TRIES = 64
"""After so many tries a path is taken, whether or not it is proved to be the cheapest."""


@kernel
def place_trees(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    dests: U32,
    turn: int,
    egress: U8,
) -> None:  # pragma: no cover
    """Grows the tree of each of `dests` and writes its job paths into `egress` uint8[D, S]; other
    entries stay.

    `turn` is a weight class: only paths of leaves whose heaviest job is of that class are placed.
    Those of heavier ones are placed already, those of lighter ones come later. With `AGAIN`, the
    loads hold all old paths; these are taken off, and all paths are placed."""
    again, everyone = turn == AGAIN, np.empty(0, np.bool_)
    for d in dests:
        root = work.root[d]
        row = dag_row(graph, cache, root)
        if scratch.entry_of[row] != root:
            _find_entries(graph, cache, row, scratch)
        if again:
            carry_tree(graph, by_port, work, loads, egress, d, -1)
        egress[d, root] = work.last_port[d]
        if not gather(work, scratch, d, everyone, turn):
            continue
        fix_others(graph, by_port, work, scratch, d, everyone, turn, egress[d])
        _place_marked(graph, cache, row, work, loads, scratch, d, egress[d])


@kernel
def add_placed(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    dests: U32,
    turn: int,
    egress: U8,
) -> None:  # pragma: no cover
    """Adds the load of the paths that `place_trees` placed among other loads, with the same
    `turn`."""
    everyone = np.empty(0, np.bool_)
    for d in dests:
        if not gather(work, scratch, d, everyone, turn):
            continue
        root, tree = work.root[d], egress[d]
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                source = v = work.leaf[i]
                while scratch.now[source] and v != root:
                    c = by_port[v, tree[v]]
                    if c >= len(graph.target):
                        break  # a leaf that is cut off
                    _add_waiting(loads, scratch, source, c)
                    v = graph.target[c]
                scratch.now[source] = False
                scratch.needed[source] = False
                scratch.waiting[source] = 0


@kernel
def relieve(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    dests: U32,
    most: float,
    egress: U8,
) -> int:  # pragma: no cover
    """Places again, tree by tree, the paths of `dests` that cross a channel whose counted load is
    above `most` when their turn comes. All other paths stay. Returns how many it placed."""
    channels, placed = len(graph.target), 0
    moved = np.zeros(len(work.leaf), np.bool_)
    for d in dests:
        root, tree = work.root[d], egress[d]
        crossing = 0
        for stage in range(2):  # mark the paths, then take off their load
            k = 0
            for q in range(work.on_offset[d], work.on_offset[d + 1]):
                job = work.on_job[q]
                for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                    v = work.leaf[i]
                    crosses = stage == 1 and moved[k]
                    while v != root and (stage == 0 or crosses):
                        c = by_port[v, tree[v]]
                        if c >= channels:
                            break  # a leaf that is cut off
                        if stage:
                            add(loads, work.weight_class[job], c, -work.item[i])
                        else:
                            crosses |= loads.counted[c] * loads.share[c] > most
                        v = graph.target[c]
                    moved[k] = crosses
                    crossing += crosses
                    k += 1
            if not crossing:
                break
        if not crossing:
            continue
        placed += crossing
        row = dag_row(graph, cache, root)
        if scratch.entry_of[row] != root:
            _find_entries(graph, cache, row, scratch)
        if gather(work, scratch, d, moved, AGAIN):
            fix_others(graph, by_port, work, scratch, d, moved, AGAIN, tree)
            _place_marked(graph, cache, row, work, loads, scratch, d, tree)
    return placed


@kernel_part
def _place_marked(
    graph: Graph,
    cache: DagCache,
    row: np.uint32,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    d: int,
    tree: U8,
) -> None:  # pragma: no cover
    """Places the paths of the leaves that `gather` marked, and writes them into `tree`."""
    _first_pass(graph, cache, row, loads, scratch)
    for q in range(work.on_offset[d + 1], work.on_offset[d], -1):
        job = work.on_job[q - 1]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            source = work.leaf[i]
            if not scratch.now[source]:
                continue
            # A leaf that is cut off has no path; the check reports it.
            if scratch.cost[source] < np.inf:
                _place(graph, cache, row, loads, scratch, source)
            scratch.now[source] = False
            scratch.waiting[source] = 0
    order = cache.order[row]
    for i in range(cache.size[row]):
        v = order[i]
        if scratch.fixed[v]:
            tree[v] = graph.port[scratch.via[v]]
            scratch.fixed[v] = False
        scratch.needed[v] = False


@kernel_part
def _find_entries(
    graph: Graph, cache: DagCache, row: np.uint32, scratch: PathScratch
) -> None:  # pragma: no cover
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    entry = scratch.entry[row]
    root = order[0]
    several = np.uint32(len(entry))
    entry[:] = several
    for i in range(1, cache.size[row]):
        v = order[i]
        first = graph.target[edge[start[i]]]
        if first == root:
            entry[v] = v
            continue
        common = entry[first]
        for e in range(start[i] + 1, start[i + 1]):
            if entry[graph.target[edge[e]]] != common:
                common = several
        entry[v] = common
    scratch.entry_of[row] = root


@kernel_part
def _first_pass(
    graph: Graph, cache: DagCache, row: np.uint32, loads: ChannelLoads, scratch: PathScratch
) -> None:  # pragma: no cover
    """Computes least costs in hop order, for all switches that paths of marked leaves may use."""
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    cost, via, needed, fixed = scratch.cost, scratch.via, scratch.needed, scratch.fixed
    target, price = graph.target, loads.price
    root = order[0]
    for i in range(cache.size[row] - 1, 0, -1):
        v = order[i]
        if needed[v]:
            if fixed[v]:
                needed[target[via[v]]] = True
                continue
            for e in range(start[i], start[i + 1]):
                needed[target[edge[e]]] = True
    scratch.rise[:] = 0
    cost[root] = 0
    for i in range(1, cache.size[row]):
        v = order[i]
        if not needed[v]:
            continue
        scratch.at[v] = i
        if fixed[v]:
            cost[v] = price[via[v]] + cost[target[via[v]]]
            continue
        best_channel = edge[start[i]]
        best = price[best_channel] + cost[target[best_channel]]
        for e in range(start[i] + 1, start[i + 1]):
            c = edge[e]
            bid = price[c] + cost[target[c]]
            if bid < best:
                best = bid
                best_channel = c
        cost[v] = best
        via[v] = best_channel


@kernel_part
def _look_again(
    graph: Graph, cache: DagCache, row: np.uint32, loads: ChannelLoads, scratch: PathScratch, v: int
) -> None:  # pragma: no cover
    """Computes `v`'s least cost and channel again, from the present bounds and rises."""
    start, edge, entry = cache.start[row], cache.edge[row], scratch.entry[row]
    at = scratch.at[v]
    best = np.float32(np.inf)
    best_channel = scratch.via[v]
    for e in range(start[at], start[at + 1]):
        c = edge[e]
        w = graph.target[c]
        bid = loads.price[c] + scratch.cost[w] + scratch.rise[entry[w]]
        if bid < best:
            best = bid
            best_channel = c
    scratch.cost[v] = best - scratch.rise[entry[v]]
    scratch.via[v] = best_channel


@kernel_part
def _place(
    graph: Graph,
    cache: DagCache,
    row: np.uint32,
    loads: ChannelLoads,
    scratch: PathScratch,
    source: int,
) -> None:  # pragma: no cover
    """Finds `source`'s cheapest path, fixes its hops and puts the waiting load on it."""
    target, price = graph.target, loads.price
    cost, rise, via, fixed = scratch.cost, scratch.rise, scratch.via, scratch.fixed
    entry, path, taken = scratch.entry[row], scratch.path, scratch.taken
    root = cache.order[row, 0]
    if not fixed[source]:
        _look_again(graph, cache, row, loads, scratch, source)
    length = 0
    for tries in range(TRIES + 1):
        length = 0
        v = source
        while v != root:
            path[length] = v
            taken[length] = via[v]
            length += 1
            v = target[via[v]]
        true = np.float32(0)
        for k in range(length - 1, -1, -1):
            v = path[k]
            true += price[taken[k]]
            if tries == 0:
                continue  # most first paths are cheap enough as they are
            if not fixed[v]:
                _look_again(graph, cache, row, loads, scratch, v)
            elif entry[v] != v:
                cost[v] = true - rise[entry[v]]
        if fixed[source] or true <= SLACK * (cost[source] + rise[entry[source]]):
            break
    true = np.float32(0)
    for n in range(length - 1, -1, -1):
        v, c = path[n], taken[n]
        _add_waiting(loads, scratch, source, c)
        fixed[v] = True
        via[v] = c
        true += price[c]
        if entry[v] == v:
            rise[v] = true - cost[v]
        else:
            cost[v] = true - rise[entry[v]]


@kernel_part
def _add_waiting(
    loads: ChannelLoads, scratch: PathScratch, source: int, c: int
) -> None:  # pragma: no cover
    """Adds the load that waits at `source` to channel `c`."""
    waiting = scratch.waiting[source]
    for k in range(loads.units.shape[0]):
        if waiting[k]:
            add(loads, k, c, waiting[k])
