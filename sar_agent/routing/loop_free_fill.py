"""Routes to switches and aggregation units, chosen so that they close no credit loop with the
others.

Between hosts, shortest paths of a tree go up, then down, even when cables are broken. Other paths
cannot always: a leaf that lost its cable to a spine reaches the spine's own LID over another leaf,
down and up again; so does the aggregation unit of a spine that talks to another spine. Dependencies
of a down channel on an up channel are what credit loops consist of, and these packets travel in the
same lane as the jobs'. They carry hardly any traffic, so their routes are chosen last: at each
switch the first shortest continuation whose dependencies close no cycle with those that exist
already.

Where all shortest paths from hosts go up, then down (`updown_property.py` proves it for trees with
every cable), nothing can close a cycle, so that no dependency is collected and no search begins.
Else each new dependency costs one depth-first search (`graph/depth_first_search.py`).

Because dependencies are only ever added, "closes a cycle" is final, and each is refused at most
once. On a three-level tree no choice of shortest paths between *all* pairs of switches is free of
credit loops in one lane, so that nothing can be promised; the check reports what remains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import I32, I64, U8, U32, Bool
from sar_agent.routing.channel_dependencies import (
    collect_dependencies,
    empty_dependencies,
    offset_tables_of,
)
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.depth_first_search import Search, reaches
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.graph.successors import PRESENT, ChannelDependencies, waited_for
from sar_agent.routing.graph.two_way_search import FORBIDDEN
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.updown_property import all_up_then_down, lowest_ports

ATTEMPTS = 200
"""How often one destination's tree is chosen again before it stays as it is."""
SEARCH_LIMIT = 20_000
"""Channels that one search may visit before it gives the dependency up: no cycle is proved then,
but another continuation costs less than the proof."""


class FillScratch(NamedTuple):
    """Scratch for one destination at a time."""

    fine: Bool
    """bool[S]: switches whose path fits so far."""
    added: U32
    """uint32[S, 2]: dependencies that were added for this destination."""
    search: Search
    """For searches over channels."""


def fill_loop_free(fabric: Fabric, graph: Graph, cache: DagCache, hops: U8, egress: U8) -> None:
    """Rewrites the entries of `egress` uint8[T + S, S] that no host-to-host path uses.

    `hops` uint8[S, S] are those between switches. Paths from hosts to the switches' own LIDs come
    first; then, where switches without hosts have aggregation units, the paths of these to all
    destinations. Where no continuation fits, an entry stays as it was.
    """
    hosts = fabric.terminals_at > 0
    units = np.zeros(fabric.switches, np.bool_)
    units[fabric.terminal_switch[fabric.terminal_up]] = True
    units &= ~hosts
    host_rows = np.zeros(fabric.destinations, np.bool_)
    host_rows[: fabric.terminals] = fabric.is_host_port
    by_guid = np.argsort(np.concatenate([fabric.terminal_guid, fabric.switch_guid]))
    switch_rows = by_guid[by_guid >= fabric.terminals]
    level = levels_of(fabric)
    by_level = np.argsort(level, kind="stable").astype(np.uint32)
    safe = all_up_then_down(graph, hops, level, by_level, hosts)
    ports = np.full_like(hops, NO_ROUTE)
    lowest_ports(graph, hops, ports)
    np.fill_diagonal(ports, 0)
    lowest = np.ascontiguousarray(ports.T)
    if safe:
        egress[fabric.terminals :] = lowest
    if units.any() or not safe:
        counted = host_rows.copy()
        counted[fabric.terminals :] = safe
        depends = empty_dependencies(fabric, 1)
        collect_dependencies(offset_tables_of(fabric, egress, None, hosts, counted), depends)

    def choose(rows: I64, stays: Bool, sends: Bool) -> None:
        _choose_entries(
            graph,
            cache,
            fabric.channel_by_port,
            fabric.destination_switch.astype(np.uint32),
            rows.astype(np.uint32),
            stays,
            sends,
            depends[0],
            lowest,
            egress,
        )

    if not safe:
        choose(switch_rows, np.zeros_like(hosts), hosts)
    if units.any():
        choose(np.concatenate([by_guid[host_rows[by_guid]], switch_rows]), hosts, units)
    for d in np.flatnonzero(~host_rows[: fabric.terminals]):
        switch = fabric.terminal_switch[d]
        egress[d] = egress[fabric.terminals + switch]
        egress[d, switch] = fabric.terminal_switch_port[d]


@njit(cache=True)
def _choose_entries(
    graph: Graph,
    cache: DagCache,
    channel_by_port: I32,
    root_of: U32,
    rows: U32,
    stays: Bool,
    sends: Bool,
    depends: U8,
    lowest: U8,
    egress: U8,
) -> None:  # pragma: no cover
    """Chooses the entries of `rows` (destinations) for paths from the switches `sends`; entries on
    paths of the switches `stays` are kept. `lowest` uint8[S, S]: by root, each switch's first port
    that leads one hop closer."""
    channels = len(graph.target)
    switches = egress.shape[1]
    scratch = FillScratch(
        np.empty(switches, np.bool_),
        np.empty((switches, 2), np.uint32),
        Search(
            np.empty(channels, np.uint32),
            np.zeros(channels, np.int64),
            np.zeros(1, np.int64),
            np.empty(depends.shape[1], np.uint32),
        ),
    )
    waits = ChannelDependencies(graph.offset, graph.target, depends)
    fine = scratch.fine
    fixed = np.empty(switches, np.bool_)
    for d in rows:
        root = root_of[d]
        if egress[d, root] == NO_ROUTE and _fits(
            graph, channel_by_port, depends, lowest[root], root, sends, scratch
        ):
            egress[d] = lowest[root]
            continue
        row = dag_row(graph, cache, root)
        size, order = cache.size[row], cache.order[row]
        start, edge = cache.start[row], cache.edge[row]
        tree = egress[d]
        if tree[root] == NO_ROUTE:
            # No entry is chosen yet. The lowest neighbour everywhere makes forced turns coincide.
            tree[root] = 0
            for i in range(1, size):
                tree[order[i]] = graph.port[cache.lowest[row, i]]
        fixed[:] = stays
        for i in range(size - 1, 0, -1):
            if fixed[order[i]]:
                fixed[graph.target[channel_by_port[order[i], tree[order[i]]]]] = True
        fits_all = False
        for _attempt in range(ATTEMPTS):
            if fits_all:
                break
            fits_all = True
            # Every switch takes the first continuation not known to close a cycle here or later …
            fine[:] = False
            fine[root] = True
            for i in range(1, size):
                v = order[i]
                if fixed[v]:
                    fine[v] = True
                    continue
                for e in range(start[i], start[i + 1]):
                    c1 = edge[e]
                    w = graph.target[c1]
                    if not fine[w]:
                        continue
                    if w != root:
                        c2 = channel_by_port[w, tree[w]]
                        if depends[c1, c2 - np.int64(graph.offset[w])] == FORBIDDEN:
                            continue
                    tree[v] = graph.port[c1]
                    fine[v] = True
                    break
            # … and the dependencies of paths in use are added. If one closes a cycle, try again.
            for i in range(1, size):
                v = order[i]
                if not sends[v] or not fine[v]:
                    continue
                c1 = channel_by_port[v, tree[v]]
                v = graph.target[c1]
                while v != root:
                    c2 = channel_by_port[v, tree[v]]
                    rank = c2 - np.int64(graph.offset[v])
                    if depends[c1, rank] == 0:
                        closes = _closes_cycle(waits, np.uint32(c1), np.uint32(c2), scratch.search)
                        depends[c1, rank] = FORBIDDEN if closes else PRESENT
                    if depends[c1, rank] == FORBIDDEN:
                        fits_all = False
                        break
                    c1 = c2
                    v = graph.target[c1]


@njit(cache=True)
def _fits(
    graph: Graph,
    channel_by_port: I32,
    depends: U8,
    tree: U8,
    root: int,
    sends: Bool,
    scratch: FillScratch,
) -> bool:  # pragma: no cover
    """Adds the dependencies of senders' paths in `tree` uint8[S] if none of them closes a cycle,
    and no other entry is known to; else leaves `depends` as it was. Whether it added them."""
    scratch.fine[:] = False
    added = 0
    fits = True
    waits = ChannelDependencies(graph.offset, graph.target, depends)
    for passing in (True, False):
        for s in range(np.uint32(len(tree))):
            if passing and not sends[s]:
                continue
            v = np.uint32(s)
            while fits and v != root and not scratch.fine[v] and tree[v] != NO_ROUTE:
                scratch.fine[v] = True
                c1 = np.uint32(channel_by_port[v, tree[v]])
                v = np.uint32(graph.target[c1])
                if v == root:
                    break
                c2 = np.uint32(channel_by_port[v, tree[v]])
                rank = c2 - graph.offset[v]
                if depends[c1, rank] == 0 and passing:
                    fits = not _closes_cycle(waits, c1, c2, scratch.search)
                    scratch.added[added, 0], scratch.added[added, 1] = c1, rank
                    added += 1
                    depends[c1, rank] = PRESENT
                elif depends[c1, rank] == FORBIDDEN:
                    fits = False
    if not fits:
        for c1, rank in scratch.added[:added]:
            depends[c1, rank] = 0
    return fits


@njit(cache=True)
def _closes_cycle(
    waits: ChannelDependencies, c1: np.uint32, c2: np.uint32, search: Search
) -> bool:  # pragma: no cover
    """Whether "c1 waits for c2" would close a cycle, or takes too long to decide."""
    return reaches(waits, waited_for, c2, c1, SEARCH_LIMIT, search)
