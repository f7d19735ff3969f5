"""The links that each flow crosses under given routes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.channel_dependencies import OffsetTables, offset_tables_of
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel
from sar_lab.fluid.flow_links import F64, FlowLinks, flow_links_of
from sar_lab.fluid.flow_steps import Flows
from sar_lab.fluid.path_routes import PathRoutes


def routed_links(
    fabric: Fabric, routes: Routes | PathRoutes, flows: Flows, *, room: int = 0
) -> FlowLinks:
    """Follows the routes of LID offset 0, or the route of each pair. Raises `CheckFailed` where one
    does not reach its destination. Each flow gets room for at least `room` links, for `reroute`."""
    if isinstance(routes, PathRoutes):
        return _pair_links(fabric, routes, flows, room)
    tables = tables_for(fabric, routes.egress[0])
    leaf = fabric.terminal_switch.astype(np.uint32)
    hops = np.zeros(len(flows.size), np.uint32)
    everyone = np.arange(len(hops), dtype=np.uint32)
    stuck = _count(tables, leaf, fabric.destination_port, flows, everyone, hops)
    if stuck >= 0:
        raise _lost(fabric, routes.engine, flows, stuck)
    path = _rooms(hops, room)
    link = np.zeros(path[-1], np.uint32)
    stop = path[:-1] + hops + np.uint32(2)
    _write(tables, leaf, flows, everyone, path, stop, link)
    return flow_links_of(link_rates(fabric), path, stop, link)


def reroute(
    fabric: Fabric, egress: U8, links: FlowLinks, flows: Flows, some: U32, name: str
) -> None:
    """Gives some flows, which must not be running, the paths of other tables (uint8[T + S, S])
    called `name`. Raises `CheckFailed` where a path does not reach its destination or exceeds its
    room."""
    tables = tables_for(fabric, egress)
    leaf = fabric.terminal_switch.astype(np.uint32)
    hops = np.zeros(len(some), np.uint32)
    stuck = _count(tables, leaf, fabric.destination_port, flows, some, hops)
    ends = np.append(links.path[1:], np.uint32(len(links.link)))
    if stuck < 0:
        short = np.flatnonzero(links.path[some] + hops + 2 > ends[some])
        stuck = int(short[0]) if len(short) else -1
    if stuck >= 0:
        raise _lost(fabric, name, flows, int(some[stuck]))
    links.stop[some] = links.path[some] + hops + np.uint32(2)
    _write(tables, leaf, flows, some, links.path, links.stop, links.link)


def tables_for(fabric: Fabric, egress: U8) -> OffsetTables:
    """The arrays that the kernels read of one offset's tables."""
    everything: Bool = np.ones(fabric.destinations, np.bool_)
    return offset_tables_of(fabric, egress, None, fabric.terminals_at > 0, everything)


def link_rates(fabric: Fabric) -> F64:
    """float64[L], Gbit/s: the capacity of every link."""
    rates = (fabric.channel_rate, fabric.terminal_rate, fabric.terminal_rate)
    return np.concatenate(rates).astype(np.float64)


def with_rates(fabric: Fabric, channels: float, hosts: float) -> Fabric:
    """The fabric with links of so many Gbit/s."""
    return replace(
        fabric,
        channel_rate=np.full_like(fabric.channel_rate, channels),
        terminal_rate=np.full_like(fabric.terminal_rate, hosts),
    )


def _rooms(hops: U32, room: int) -> U32:
    each = np.maximum(hops + np.uint32(2), np.uint32(room))
    return np.concatenate([[0], np.cumsum(each)]).astype(np.uint32)


def _lost(fabric: Fabric, engine: str, flows: Flows, f: int) -> CheckFailed:
    source, destination = int(flows.source[f]), int(flows.destination[f])
    return CheckFailed(
        f"{engine}: no route from {fabric.destination_name(source)} "
        f"to {fabric.destination_name(destination)}"
    )


def _pair_links(fabric: Fabric, routes: PathRoutes, flows: Flows, room: int) -> FlowLinks:
    source, destination = flows.source.astype(np.int32), flows.destination.astype(np.int32)
    ends = fabric.channels + source, fabric.channels + fabric.terminals + destination
    rows = np.column_stack([ends[0], routes.channels(source, destination), ends[1]])
    used = rows >= 0
    hops = used.sum(axis=1).astype(np.uint32) - np.uint32(2)
    path = _rooms(hops, room)
    stop = path[:-1] + hops + np.uint32(2)
    link = np.zeros(path[-1], np.uint32)
    place = path[:-1, None] + np.cumsum(used, axis=1) - 1
    link[place[used]] = rows[used]
    return flow_links_of(link_rates(fabric), path, stop, link)


@kernel
def _count(
    tables: OffsetTables, leaf: U32, port: U8, flows: Flows, some: U32, hops: U32
) -> int:  # pragma: no cover
    """Counts the channels of each flow in `hops`; returns the first flow that does not arrive at
    its `port`, or -1."""
    switches = tables.egress.shape[1]
    for i in range(len(some)):
        f = some[i]
        d = flows.destination[f]
        v = leaf[flows.source[f]]
        while v != tables.root[d]:
            c = tables.channel_by_port[v, tables.egress[d, v]]
            if c >= len(tables.target) or hops[i] >= switches:
                return i
            hops[i] += np.uint32(1)
            v = tables.target[c]
        if tables.egress[d, v] != port[d]:
            return i
    return -1


@kernel
def _write(
    tables: OffsetTables, leaf: U32, flows: Flows, some: U32, path: U32, stop: U32, link: U32
) -> None:  # pragma: no cover
    """Writes the path of each flow: the source's link, the channels, the destination's link."""
    channels, terminals = len(tables.target), len(leaf)
    for f in some:
        s, d = flows.source[f], flows.destination[f]
        link[path[f]] = channels + s
        v = leaf[s]
        for i in range(path[f] + np.uint32(1), stop[f] - np.uint32(1)):
            link[i] = tables.channel_by_port[v, tables.egress[d, v]]
            v = tables.target[link[i]]
        link[stop[f] - np.uint32(1)] = channels + terminals + d
