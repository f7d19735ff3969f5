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
every cable), nothing can close a cycle, and every switch takes its lowest port. Else a topological
order of the hosts' dependencies is kept while others are added
(`graph/two_way_search.py`): most agree with it, which costs nothing. Where the hosts' routes close
a loop themselves, and so need several lanes, the dependencies that disagree with an order as good
as any are left out.

Because dependencies are only ever added, "closes a cycle" is final, and each is refused at most
once. On a three-level tree no choice of shortest paths between *all* pairs of switches is free of
credit loops in one lane, so that nothing can be promised; the check reports what remains.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import I32, I64, U8, U32, Bool
from sar_agent.routing.channel_dependencies import host_dependencies
from sar_agent.routing.graph.csr import ChannelGraph, Graph, channel_graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.graph.topological_order import broken_order
from sar_agent.routing.graph.two_way_search import (
    FORBIDDEN,
    LaneOrder,
    judge,
    lane_of,
)
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.updown_property import lowest_ports, rise_then_fall
from sar_agent.util.kernels import kernel

ATTEMPTS = 200
"""How often one destination's tree is chosen again before it stays as it is."""
PATIENCE = 300
"""Channels that one search may find before it gives the dependency up: no cycle is proved then, but
another continuation costs less than the proof. (1,728 hosts, 5 % of the cables gone: 0.03 s; with
3,000 channels 0.3 s, for the same verdict.)"""
LEFT_OUT = 3
"""The value of a dependency of hosts' paths that the order disagrees with."""


def fill_loop_free(fabric: Fabric, graph: Graph, egress: U8, depends: U8 | None = None) -> None:
    """Rewrites the entries of `egress` uint8[T + S, S] that no host-to-host path uses; `depends`
    uint8[C, W] are the dependencies of those paths where they are known already.

    Paths from hosts to the switches' own LIDs come first; then, where switches without hosts have
    aggregation units, the paths of these to all destinations. Where no continuation fits, an entry
    stays as it was.
    """
    units = np.zeros(fabric.switches, np.bool_)
    units[fabric.terminal_switch[fabric.terminal_up]] = True
    units &= fabric.terminals_at == 0
    hops = all_hops(graph)
    if units.any() or not rise_then_fall(fabric, graph, hops):
        _fit_around(fabric, graph, egress, units, depends)
    else:
        ports = np.full_like(hops, NO_ROUTE)
        lowest_ports(graph, hops, ports)
        np.fill_diagonal(ports, 0)
        egress[fabric.terminals :] = ports.T
    for d in np.flatnonzero(~fabric.is_host_port):
        switch = fabric.terminal_switch[d]
        egress[d] = egress[fabric.terminals + switch]
        egress[d, switch] = fabric.terminal_switch_port[d]


def _fit_around(fabric: Fabric, graph: Graph, egress: U8, units: Bool, depends: U8 | None) -> None:
    """Chooses the entries one by one; `units` bool[S] are switches without hosts that have
    aggregation units."""
    net, cache = channel_graph_of(fabric), new_cache(fabric)
    if depends is None:
        depends = host_dependencies(fabric, egress)
    lane, hosts = _lane_with(fabric, net, depends), fabric.terminals_at > 0
    by_guid = np.argsort(fabric.nodes.destinations)
    switch_rows = by_guid[by_guid >= fabric.terminals]
    host_rows = by_guid[np.isin(by_guid, np.flatnonzero(fabric.is_host_port))]

    def choose(rows: I64, stays: Bool, sends: Bool) -> None:
        root_of, dests = fabric.destination_switch.astype(np.uint32), rows.astype(np.uint32)
        by_port = fabric.channel_by_port
        parts = graph, cache, by_port, root_of, dests, stays, sends, lane
        _choose_entries(*parts, egress)

    choose(switch_rows, np.zeros_like(hosts), hosts)
    if units.any():
        choose(np.concatenate([host_rows, switch_rows]), hosts, units)


def _lane_with(fabric: Fabric, net: ChannelGraph, depends: U8) -> LaneOrder:
    """A lane with these dependencies, uint8[C, W]; those that disagree with its order, if any, are
    `LEFT_OUT`."""
    level = levels_of(fabric)
    rises = level[fabric.channel_target] > level[fabric.channel_source]
    hints = np.argsort(~rises, kind="stable").astype(np.uint32)
    order = broken_order(net, depends, hints)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    c, rank = np.nonzero(depends)
    against = place[net.offset[net.target[c]] + rank.astype(np.uint32)] < place[c]
    depends[c[against], rank[against]] = 0
    lane = lane_of(net, order, depends)
    depends[c[against], rank[against]] = LEFT_OUT
    return lane


@kernel
def _choose_entries(
    graph: Graph,
    cache: DagCache,
    channel_by_port: I32,
    root_of: U32,
    rows: U32,
    stays: Bool,
    sends: Bool,
    lane: LaneOrder,
    egress: U8,
) -> None:  # pragma: no cover
    """Chooses the entries of `rows` (destinations) for paths from the switches `sends`; entries on
    paths of the switches `stays` are kept."""
    switches, depends = egress.shape[1], lane.depends
    fine = np.empty(switches, np.bool_)
    fixed, used = np.empty(switches, np.bool_), np.empty(switches, np.bool_)
    for d in rows:
        root = root_of[d]
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
        used[:] = sends
        fits_all, served = False, True
        for _attempt in range(ATTEMPTS):
            if fits_all or not served:
                break
            fits_all = True
            # Every switch takes the first continuation not known to close a cycle here or later;
            # where paths in use passed the last time, that is found out at once …
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
                        rank = c2 - np.int64(graph.offset[w])
                        if used[v] and depends[c1, rank] == 0:
                            judge(lane, np.uint32(c1), np.uint32(c2), PATIENCE)
                        if depends[c1, rank] == FORBIDDEN:
                            continue
                    tree[v] = graph.port[c1]
                    fine[v] = True
                    break
            # … and the dependencies of paths in use are added. If one closes a cycle, try again.
            for i in range(1, size):
                v = order[i]
                if not sends[v]:
                    continue
                if not fine[v]:
                    served = False
                    continue
                c1 = channel_by_port[v, tree[v]]
                v = graph.target[c1]
                while v != root:
                    used[v] = True
                    c2 = channel_by_port[v, tree[v]]
                    rank = c2 - np.int64(graph.offset[v])
                    if depends[c1, rank] == 0:
                        judge(lane, np.uint32(c1), np.uint32(c2), PATIENCE)
                    if depends[c1, rank] == FORBIDDEN:
                        fits_all = False
                        break
                    c1 = c2
                    v = graph.target[c1]
