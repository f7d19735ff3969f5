"""Other shortest paths, where an engine's tables allow no lanes hop by hop.

Ties decide. On a Dragonfly some pairs of switches have, beside a local, a global and a local cable,
an equally short path over two global cables, and paths that mix both kinds close a cycle of channel
pairs (`hop.py`). So each entry keeps the engine's port where no cycle closes, and takes another
shortest path where one would; first of all a path that needs no new triple of channels, so that
paths of a kind stay together. Entries with one shortest path only are put in before all others:
where these alone close a cycle, no shortest paths allow lanes hop by hop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.routing.graph.csr import Graph, channel_graph_of, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.graph.two_way_search import Order, admits, new_order
from sar_agent.routing.lanes.channel_pairs import (
    CYCLE,
    PairGraph,
    Triples,
    has_bit,
    pair_levels,
    pairs_after,
    pairs_before,
    set_bit,
)
from sar_agent.util.kernels import kernel, kernel_part

PATIENCE = 3000
"""Pairs that the search for one new triple may visit; past that, it counts as closing a cycle."""


class _ShortestPaths(NamedTuple):
    """Those towards one root at a time, by switch."""

    hops: I32
    """int32[S]"""
    ways: I32
    """int32[S]: how many channels lead one hop closer."""
    port: U8
    """uint8[S]: the port of the first of them."""


def other_tables(fabric: Fabric, egress: U8) -> U8 | None:
    """uint8[O, T + S, S]: `egress` with other shortest paths to hosts where needed; None where no
    shortest paths will do, or where the search found none."""
    net = channel_graph_of(fabric)
    ports = net.channel.shape[1] - 1
    pairs = fabric.channels * ports
    put = PairGraph(net, np.zeros((pairs, (ports + 63) // 64), np.uint64))
    order = new_order(np.arange(pairs), 256)
    graph, cache = graph_of(fabric), new_cache(fabric)
    tables = egress.copy()
    hosts = np.concatenate([fabric.is_host_port, np.zeros(fabric.switches, np.bool_)])
    others = np.concatenate([fabric.terminal_up & ~fabric.is_host_port, fabric.switch_up])
    root = fabric.destination_switch.astype(np.uint32)
    for wanted, forced in ((hosts, True), (hosts, False), (others, False)):
        required = wanted is hosts
        for table in tables:
            if not _choose(graph, cache, put, order, table, root, wanted, forced, required):
                return None
        if forced:
            found = _order_forced(put)
            if found is None:
                return None
            order = found
    return tables


def _order_forced(put: PairGraph) -> Order | None:
    """An order of pairs by the triples put in so far; None where these close a cycle. A pair
    without a triple is placed with the last of its first channel, so that few have to be moved."""
    ports = put.net.channel.shape[1] - 1
    begins = np.zeros((len(put.net.source), put.follows.shape[1]), np.uint64)
    level = pair_levels(put.net, Triples(begins, put.follows))
    if (level == CYCLE).any():
        return None
    by_channel = level.reshape(-1, ports)
    guess = np.where(by_channel < 0, by_channel.max(axis=1, keepdims=True), by_channel).ravel()
    return new_order(np.argsort(guess, kind="stable"), 256)


@kernel
def _choose(
    graph: Graph,
    cache: DagCache,
    put: PairGraph,
    order: Order,
    table: U8,
    root: U32,
    wanted: Bool,
    forced: bool,
    required: bool,
) -> bool:  # pragma: no cover
    """Puts in the paths of `table` uint8[D, S] to the destinations `wanted` bool[D]: those that are
    the only shortest ones (`forced`), or it chooses among the others. False where a choice that is
    `required` closes a cycle; one that is not stays as it is."""
    destinations, switches = table.shape
    paths = _ShortestPaths(
        np.empty(switches, np.int32), np.empty(switches, np.int32), np.empty(switches, np.uint8)
    )
    previous = np.int64(-1)
    for d in range(destinations):
        if not wanted[d]:
            continue
        r = root[d]
        if np.int64(r) == previous and forced:
            continue  # the same paths
        dag = dag_row(graph, cache, r)
        if np.int64(r) != previous:
            _shortest_paths(graph, cache, dag, paths)
            previous = np.int64(r)
        row = table[d]
        for v in cache.order[dag, 1 : cache.size[dag]]:
            if forced:
                _put_forced(put, paths, v)
            elif paths.ways[v] == 1:
                row[v] = paths.port[v]
                fits = _fits(put, order, row, paths, v, np.uint32(row[v]))
                if required and not fits:
                    return False
            elif not _pick(put, order, row, paths, v) and required:
                return False
    return True


@kernel_part
def _shortest_paths(
    graph: Graph, cache: DagCache, dag: np.uint32, paths: _ShortestPaths
) -> None:  # pragma: no cover
    """Fills `paths` from a row of the cache."""
    order, start, edge = cache.order[dag], cache.start[dag], cache.edge[dag]
    paths.hops[order[0]], paths.ways[order[0]] = 0, 0
    for i in range(np.uint32(1), cache.size[dag]):
        v, c = order[i], edge[start[i]]
        paths.hops[v] = paths.hops[graph.target[c]] + 1
        paths.ways[v] = start[i + np.uint32(1)] - start[i]
        paths.port[v] = graph.port[c]


@kernel_part
def _put_forced(put: PairGraph, paths: _ShortestPaths, v: np.uint32) -> None:  # pragma: no cover
    """Puts in v's first three channels where there is one shortest path only, cycle or not."""
    net, s = put.net, v
    for _ in range(3):
        if paths.ways[s] != 1:
            return
        s = net.target[net.channel[s, paths.port[s]]]
    c = net.channel[v, paths.port[v]]
    w = net.target[c]
    q = np.uint32(paths.port[w])
    then = np.uint32(paths.port[net.target[net.channel[w, q]]])
    set_bit(put.follows, c * np.uint32(net.channel.shape[1] - 1) + q, then)


@kernel_part
def _pick(
    put: PairGraph, order: Order, row: U8, paths: _ShortestPaths, v: np.uint32
) -> bool:  # pragma: no cover
    """Chooses v's port: one that needs no new triple, the engine's first; else one whose triple
    closes no cycle. False where there is no such port."""
    net, hops = put.net, paths.hops
    channels, ports = len(net.target), net.channel.shape[1] - 1
    own = row[v]
    for new in range(2):
        for turn in range(ports + 1):
            q = np.uint32(own) if turn == 0 else np.uint32(turn - 1)
            if q >= ports or net.channel[v, q] >= channels:
                continue
            if hops[net.target[net.channel[v, q]]] != hops[v] - 1:
                continue
            if _is_in(put, row, paths, v, q) or (new and _fits(put, order, row, paths, v, q)):
                row[v] = q
                return True
    return False


@kernel_part
def _is_in(
    put: PairGraph, row: U8, paths: _ShortestPaths, v: np.uint32, q: np.uint32
) -> bool:  # pragma: no cover
    """Whether the three channels that begin at v's port q were put in, or are fewer than three."""
    if paths.hops[v] < 3:
        return True
    net = put.net
    c = net.channel[v, q]
    w = net.target[c]
    port = np.uint32(row[w])
    then = np.uint32(row[net.target[net.channel[w, port]]])
    return has_bit(put.follows, c * np.uint32(net.channel.shape[1] - 1) + port, then)


@kernel_part
def _fits(
    put: PairGraph, order: Order, row: U8, paths: _ShortestPaths, v: np.uint32, q: np.uint32
) -> bool:  # pragma: no cover
    """Puts them in, unless that closes a cycle; whether they are in."""
    if _is_in(put, row, paths, v, q):
        return True
    net, ports = put.net, np.uint32(put.net.channel.shape[1] - 1)
    c = net.channel[v, q]
    w = net.target[c]
    port = np.uint32(row[w])
    c1 = net.channel[w, port]
    then = np.uint32(row[net.target[c1]])
    pair = c * ports + port
    if not admits(put, pairs_after, pairs_before, order, pair, c1 * ports + then, PATIENCE):
        return False
    set_bit(put.follows, pair, then)
    return True
