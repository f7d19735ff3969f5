"""Dmodc: routes of degraded fat trees by a closed form.

J. Gliksberg et al., "High-Quality Fault Resiliency in Fat Trees", IEEE Micro 40(1), 2020
(arXiv 2211.13101; extended abstract 2211.11817). A parallel generalized fat tree (PGFT) may have
several cables between two switches, and any cable may be missing. For switch s and destination d:

    C(s, d)    the neighbours of s that are closer to the leaf of d, up then down, by GUID
    next hop   C[floor(t_d / P_s) mod |C|]
    cable      number floor(t_d / (P_s |C|)) mod k of the k cables to that neighbour, by port

t_d numbers the hosts such that those of a leaf, then those of a subtree, follow each other. The
divider P_s is 1 for leaf switches; above, it is the largest P of a switch below times that switch's
number of parents. On a whole PGFT this is D-mod-k (E. Zahavi, 2010). Nothing is counted, so a dead
cable changes only entries of switches that have another C, P or t for it. O(T S) after the search.

Two rules are ours. A switch that reaches the leaf by going down only goes down, and any other goes
up (`updown_paths.py`): on a tree with dead cables a neighbour below may be closer, and a path over
it would go up again. And subtrees are numbered together at every level, by the distances between
leaves, where the paper groups the nearest leaves only.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import I64, U8, U32, U64
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, new_cache
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.updn import tree_order
from sar_agent.routing.updown_paths import (
    Orientation,
    RootDistances,
    legal_row,
    legal_tree,
    new_row,
)
from sar_agent.util.kernels import kernel, kernel_part


class Dmodc:
    """Oblivious; serves fat trees, also with missing cables."""

    name = "dmodc"
    summary = "fat trees, also with dead cables: D-mod-k as a closed form (Dmodc, 2020)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, or too much of it is broken."""
        egress, _ = closed_form_trees(fabric, graph_of(fabric))
        return Routes(self.name, fabric.digest, egress[None])


def closed_form_trees(
    fabric: Fabric, graph: Graph, rotation: U64 | None = None
) -> tuple[U8, DagCache]:
    """uint8[T + S, S] egress ports, and a cache that holds the sets C of every leaf with hosts.
    `rotation`, uint64[S], is added to floor(t_d / P_s) (`rotations.py`). Raises `Unserved`."""
    legal, cache = tree_order(fabric, graph), new_cache(fabric)
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    number = host_numbers(fabric, graph, legal)
    order = np.argsort(number, kind="stable")
    _closed_form(
        graph,
        legal,
        new_row(fabric),
        cache,
        np.zeros(fabric.switches, np.uint64) if rotation is None else rotation,
        dividers(fabric),
        fabric.terminal_switch.astype(np.uint32),
        fabric.destination_port,
        number.astype(np.uint64),
        order[fabric.is_host_port[order]].astype(np.uint32),
        egress,
    )
    fill_loop_free(fabric, graph, egress)
    return egress, cache


def cables_up(fabric: Fabric) -> I64:
    """int64[2, ·]: switches, and the neighbours above them, each pair once."""
    level = tree_levels(fabric)
    rises = fabric.channel_up & (level[fabric.channel_target] > level[fabric.channel_source])
    ends = np.stack([fabric.channel_source[rises], fabric.channel_target[rises]])
    return np.unique(ends, axis=1).astype(np.int64)


def dividers(fabric: Fabric) -> U64:
    """uint64[S]: P of each switch. Raises `Unserved` where the fabric is no fat tree."""
    level = tree_levels(fabric)
    pairs = cables_up(fabric)
    parents = np.bincount(pairs[0], minlength=fabric.switches).astype(np.uint64)
    divider = np.ones(fabric.switches, np.uint64)
    for below in range(int(level.max(initial=0))):
        source, target = pairs[:, level[pairs[0]] == below]
        np.maximum.at(divider, target, divider[source] * parents[source])
    return divider


def host_numbers(fabric: Fabric, graph: Graph, legal: Orientation) -> I64:
    """int64[T]: t of each terminal, in the order of leaves, then ports; aggregation units come
    last. Leaves of a subtree follow each other, subtrees in the order of their lowest GUIDs. Ports
    whose cable is down are numbered, too, so that a dead host moves no other's routes."""
    leaves = np.unique(fabric.terminal_switch)
    leaves = leaves[np.argsort(graph.rank[leaves])]
    apart = _distances(graph, legal, new_row(fabric), leaves.astype(np.uint32))
    place = np.arange(len(leaves))
    keys = [place]
    for hops in np.unique(apart[apart > 0]):
        keys.append(np.where(apart <= hops, place[None, :], len(leaves)).min(axis=1, initial=0))
    by_leaf = np.empty(fabric.switches, np.int64)
    by_leaf[leaves[np.lexsort(keys)]] = np.arange(len(leaves))
    order = np.lexsort(
        (
            fabric.terminal_switch_port,
            by_leaf[fabric.terminal_switch],
            fabric.terminal_kind == Kind.IN_SWITCH,
        )
    )
    number = np.empty(fabric.terminals, np.int64)
    number[order] = np.arange(fabric.terminals)
    return number


@kernel
def _distances(
    graph: Graph, legal: Orientation, row: RootDistances, leaves: U32
) -> I64:  # pragma: no cover
    """int64[L, L]: hops up and down from each leaf (row) to each (column)."""
    count = np.uint32(len(leaves))
    apart = np.zeros((count, count), np.int64)
    for j in range(count):
        legal_row(graph, legal, row, leaves[j])
        for i in range(count):
            apart[i, j] = row.distance[leaves[i]]
    return apart


@kernel
def _closed_form(
    graph: Graph,
    legal: Orientation,
    row: RootDistances,
    cache: DagCache,
    rotation: U64,
    divider: U64,
    root_of: U32,
    last_port: U8,
    number: U64,
    dests: U32,
    egress: U8,
) -> None:  # pragma: no cover
    """Fills rows `dests` (those of one leaf together) of `egress` uint8[D, S]."""
    one = np.uint32(1)
    group = np.zeros(257, np.uint32)  # where the cables to each next neighbour begin
    count = np.uint32(len(dests))
    first = np.uint32(0)
    while first < count:
        root = root_of[dests[first]]
        beyond = first
        while beyond < count and root_of[dests[beyond]] == root:
            beyond += one
        for d in dests[first:beyond]:
            legal_tree(graph, legal, row, root, last_port[d], egress[d])
        for i in range(one, row.size[0]):
            v = row.order[i]
            begin, end = row.start[i], row.start[i + one]
            _by_neighbour(graph, row.edge, begin, end)
            groups = np.uint64(0)
            for e in range(begin, end):
                if e == begin or graph.target[row.edge[e]] != graph.target[row.edge[e - one]]:
                    group[groups] = e
                    groups += np.uint64(1)
            group[groups] = end
            until, port = np.uint64(0), np.uint8(0)
            for k in range(first, beyond):  # by number
                d = dests[k]
                if number[d] >= until:
                    turn = number[d] // divider[v]
                    until = (turn + np.uint64(1)) * divider[v]
                    turn += rotation[v]
                    chosen, cable = turn % groups, np.uint32(0)
                    cables = np.uint64(group[chosen + np.uint64(1)] - group[chosen])
                    if cables > 1:
                        cable = np.uint32((turn // groups) % cables)
                    port = graph.port[row.edge[group[chosen] + cable]]
                egress[d, v] = port
        _keep_row(row, cache, root)
        first = beyond


@kernel_part
def _keep_row(row: RootDistances, cache: DagCache, root: int) -> None:  # pragma: no cover
    at, size, one = cache.slot[root], row.size[0], np.uint32(1)
    cache.tag[at], cache.size[at] = root, size
    for i in range(size):
        cache.order[at, i] = row.order[i]
        cache.start[at, i + one] = row.start[i + one]
    cache.start[at, 0] = 0
    for e in range(row.start[size]):
        cache.edge[at, e] = row.edge[e]


@kernel_part
def _by_neighbour(graph: Graph, edge: U32, begin: int, end: int) -> None:  # pragma: no cover
    """Sorts edge[begin:end], which are in the order of ports, by the GUID of their far end; those
    of one neighbour stay in their order."""
    one = np.uint32(1)
    for i in range(np.uint32(begin) + one, np.uint32(end)):
        c = edge[i]
        j = np.uint32(i)
        while j > begin and graph.rank[graph.target[edge[j - one]]] > graph.rank[graph.target[c]]:
            edge[j] = edge[j - one]
            j -= one
        edge[j] = c
