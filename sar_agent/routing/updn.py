"""Up*/Down* and fat-tree routing: legal paths (`updown_paths.py`), two rules for the port.

`updn`: every switch takes the port that fewest destinations have, as OpenSM's engine of that name.
Ties are broken as in `minhop.py`, not to the lowest port as in OpenSM, and the levels are our own.

`ftree`: as OpenSM's engine, in index order (Zahavi's D-mod-k). From a host's leaf one *main* way up
is chosen, at each level the parent whose channel down to here leads to fewest hosts, so that the
hosts of a leaf, then the leaves of a subtree, take turns. Switches below the main way go up to it;
all others go down wherever they can. A host's traffic then comes down one way only, and all traffic
on that way has the same destination. Both cost O(S + C) for each terminal.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
from numba import njit

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import I32, I64, U8, U32, Bool
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.minhop import leaf_by_leaf
from sar_agent.routing.root_sets import joining_order
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.turn_order import heights_of
from sar_agent.routing.updown_paths import (
    Orientation,
    RootDistances,
    fill_rest,
    legal_row,
    new_row,
    orient,
    unreached_leaves,
)


class Updn:
    """Oblivious; free of credit loops in one lane on any fabric."""

    name = "updn"
    summary = "up*/down*: no credit loop on any fabric in one lane (OpenSM's, but for ties)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for any fabric."""
        began = time.perf_counter()
        graph = graph_of(fabric)
        egress = _grow(fabric, graph, updn_order(fabric, graph), main=False)
        return Routes(self.name, fabric.digest, egress[None], seconds=time.perf_counter() - began)


class Ftree:
    """Oblivious; serves fat trees only."""

    name = "ftree"
    summary = "fat trees: hosts of a leaf take turns on the ways up (OpenSM's ftree, index order)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, or too much of it is broken."""
        began = time.perf_counter()
        graph = graph_of(fabric)
        legal = tree_order(fabric, graph)
        egress = _grow(fabric, graph, legal, main=True)
        return Routes(self.name, fabric.digest, egress[None], seconds=time.perf_counter() - began)


def tree_order(fabric: Fabric, graph: Graph) -> Orientation:
    """The orientation of a fat tree's channels. Raises `Unserved` where the fabric is no fat tree,
    or where two leaf switches have no switch above both any more."""
    legal = orient(fabric, tree_levels(fabric))
    a, b = unreached_leaves(graph, legal, new_row(fabric), fabric.leaves.astype(np.uint32))
    if a >= 0:
        raise Unserved(
            f'{fabric.name}: leaf switches "{fabric.switch_name[a]}" and '
            f'"{fabric.switch_name[b]}" have no common switch above them; updn or sar-plus serve'
        )
    return legal


def updn_order(fabric: Fabric, graph: Graph) -> Orientation:
    """The orientation by tree levels where all leaf switches then reach each other. Else the best
    for traffic between all hosts of these: by heights of several kinds (`turn_order.py`), with
    switches lifted that join what is not joined (`root_sets.py`), and by hops from the switch
    nearest to all leaf switches, which joins all on any connected fabric, but turns everything
    around that switch."""
    leaves, row = fabric.leaves.astype(np.uint32), new_row(fabric)
    with suppress(Unserved):
        legal = orient(fabric, tree_levels(fabric))
        if unreached_leaves(graph, legal, row, leaves)[0] < 0:
            return legal
    hops = all_hops(graph).astype(np.int64)
    distance = np.where(fabric.switch_up, hops[:, leaves].sum(axis=1), hops.sum() + 1)
    around = -hops[np.lexsort((fabric.switch_guid, distance))[0]]
    heights = [*heights_of(fabric, graph)]
    if levels_of(fabric).any():
        heights.append(levels_of(fabric))
    heights = [np.argsort(orient(fabric, h).falling[::-1]) for h in heights]  # alike: once
    orders = {
        order.tobytes(): joining_order(fabric, order)
        for order in {height.tobytes(): height for height in heights}.values()
    }
    if not orders:
        return orient(fabric, around)
    best, least = orient(fabric, around), np.inf
    for order in (*orders.values(), around):
        legal = orient(fabric, order)
        if unreached_leaves(graph, legal, row, leaves)[0] < 0:
            crowding = _crowding(fabric, graph, _host_rows(fabric, graph, legal))
            if crowding < least:
                best, least = legal, crowding
    return best


def _crowding(fabric: Fabric, graph: Graph, egress: U8) -> float:
    """The sum of the cubes of all channels' numbers of routes between host ports. (The largest
    number alone is often that of a cable which all orders share.)"""
    routes = _routes_between_hosts(
        graph,
        fabric.channel_by_port.astype(np.uint32),
        fabric.destination_switch.astype(np.uint32),
        fabric.terminals_at.astype(np.int64),
        egress,
    )
    return float((routes.astype(np.float64) ** 3).sum())


@njit(cache=True)
def _routes_between_hosts(
    graph: Graph, by_port: U32, root_of: U32, at_switch: I64, egress: U8
) -> I64:  # pragma: no cover
    routes = np.zeros(len(graph.target), np.int64)
    for d in range(len(egress)):
        tree, root = egress[d], root_of[d]
        if tree[root] == NO_ROUTE:
            continue
        for s in range(len(tree)):
            v = np.uint32(s)
            hops = 0
            while at_switch[s] and v != root and hops < len(tree):
                c = by_port[v, tree[v]]
                if c >= len(routes):
                    break
                routes[c] += at_switch[s]
                v = graph.target[c]
                hops += 1
    return routes


def _grow(fabric: Fabric, graph: Graph, legal: Orientation, *, main: bool) -> U8:
    """uint8[T + S, S]: egress ports to all destinations."""
    egress = _host_rows(fabric, graph, legal, main=main)
    fill_loop_free(fabric, graph, new_cache(fabric), all_hops(graph), egress)
    return egress


def _host_rows(fabric: Fabric, graph: Graph, legal: Orientation, *, main: bool = False) -> U8:
    """uint8[T + S, S]: egress ports to host ports, `NO_ROUTE` elsewhere."""
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    order = leaf_by_leaf(fabric)[: fabric.terminals]
    order = order[fabric.is_host_port[order]]
    egress[order] = legal_rows(fabric, graph, legal, order, main=main)
    return egress


def legal_rows(
    fabric: Fabric,
    graph: Graph,
    legal: Orientation,
    terminals: U32,
    *,
    main: bool = False,
) -> U8:
    """uint8[D, S]: egress ports to these terminals, those of one leaf together; with `main` as
    `ftree` chooses them, else as `updn`."""
    rows = np.full((len(terminals), fabric.switches), NO_ROUTE, np.uint8)
    _spread(
        graph,
        legal,
        new_row(fabric),
        fabric.channel_reverse.astype(np.uint32),
        fabric.terminal_switch[terminals].astype(np.uint32),
        fabric.terminal_switch_port[terminals].astype(np.uint8),
        np.arange(len(terminals), dtype=np.uint32),
        np.zeros(max(1, fabric.channels), np.int32),
        main,
        rows,
    )
    return rows


@njit(cache=True)
def _spread(
    graph: Graph,
    legal: Orientation,
    row: RootDistances,
    reverse: U32,
    root_of: U32,
    last_port: U8,
    dests: U32,
    used: I32,
    main: bool,
    egress: U8,
) -> None:  # pragma: no cover
    """Fills rows `dests` (those of one leaf together) of `egress` uint8[D, S]; `used` int32[C]
    counts the destinations of each channel so far."""
    switches = egress.shape[1]
    on_main = np.zeros(switches, np.bool_)
    through = np.zeros(switches, np.int32)
    one = np.uint32(1)
    previous = np.int64(-1)
    for d in dests:
        root = root_of[d]
        tree = egress[d]
        if root != previous:
            legal_row(graph, legal, row, root)
            previous = np.int64(root)
        if main:
            on_main[:] = False
            _main_way(graph, legal, reverse, root, used, on_main, tree)
        for i in range(one, row.size[0]):
            v = row.order[i]
            if on_main[v]:
                continue
            best = row.edge[row.start[i]]
            joins = main and on_main[graph.target[best]]
            for e in range(row.start[i] + one, row.start[i + one]):
                c = row.edge[e]
                w = graph.target[c]
                also = main and on_main[w]
                if also < joins or (also == joins and used[c] > used[best]):
                    continue
                # Among ports used alike: as in `minhop.py`.
                if also > joins or used[c] < used[best] or through[w] < through[graph.target[best]]:
                    best = c
                    joins = also
            tree[v] = graph.port[best]
            if not (main and row.falls[v]):  # a way down beside the main way is no part of it
                on_main[v] = joins
                used[best] += 1
                through[graph.target[best]] += 1
        size = row.size[0]
        if size < switches:
            fill_rest(graph, row, tree)
            previous = np.int64(-1)
        tree[root] = last_port[d]


@njit(cache=True)
def _main_way(
    graph: Graph, legal: Orientation, reverse: U32, root: int, used: I32, on_main: Bool, tree: U8
) -> None:  # pragma: no cover
    """Marks a way up from `root`, each time to the parent whose channel down is used least, and
    writes the way down into `tree` uint8[S]."""
    v = np.uint32(root)
    on_main[v] = True
    while True:
        best = np.int64(-1)
        for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
            if legal.higher[c] and (best < 0 or used[reverse[c]] < used[reverse[np.uint32(best)]]):
                best = np.int64(c)
        if best < 0:
            return
        down = reverse[np.uint32(best)]
        v = graph.target[np.uint32(best)]
        tree[v] = graph.port[down]
        used[down] += 1
        on_main[v] = True
