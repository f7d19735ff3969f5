"""The links that each flow crosses under given routes."""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.lab.fluid.flows import Flows
from sar_agent.lab.fluid.links import Links, links_of
from sar_agent.routing.dag import U32
from sar_agent.routing.dependencies import Tables, tables_of
from sar_agent.routing.routes import Routes


def routed_links(fabric: Fabric, routes: Routes, flows: Flows) -> Links:
    """Follows the routes of LID offset 0; `CheckFailed` where one does not arrive."""
    tables = tables_of(
        fabric,
        routes.egress[0],
        None,
        fabric.terminals_at > 0,
        np.ones(fabric.destinations, np.bool_),
    )
    leaf = fabric.terminal_switch.astype(np.uint32)
    hops = np.zeros(len(flows.size), np.uint32)
    stuck = _count(tables, leaf, fabric.destination_port, flows, hops)
    if stuck >= 0:
        source, destination = int(flows.source[stuck]), int(flows.destination[stuck])
        raise CheckFailed(
            f"{routes.engine}: no route from {fabric.destination_name(source)} "
            f"to {fabric.destination_name(destination)}"
        )
    path = np.concatenate([[0], np.cumsum(hops + 2)]).astype(np.uint32)
    link = np.empty(path[-1], np.uint32)
    _write(tables, leaf, flows, path, link)
    rates = (fabric.channel_rate, fabric.terminal_rate, fabric.terminal_rate)
    return links_of(np.concatenate(rates).astype(np.float64), path, link)


@njit(cache=True)
def _count(tables: Tables, leaf: U32, port: U8, flows: Flows, hops: U32) -> int:  # pragma: no cover
    """Channels of each flow; the first flow that does not arrive at its `port`, or -1."""
    switches = tables.egress.shape[1]
    for f in range(len(hops)):
        d = flows.destination[f]
        v = leaf[flows.source[f]]
        while v != tables.root[d]:
            c = tables.channel_by_port[v, tables.egress[d, v]]
            if c >= len(tables.target) or hops[f] >= switches:
                return f
            hops[f] += np.uint32(1)
            v = tables.target[c]
        if tables.egress[d, v] != port[d]:
            return f
    return -1


@njit(cache=True)
def _write(
    tables: Tables, leaf: U32, flows: Flows, path: U32, link: U32
) -> None:  # pragma: no cover
    """Injection, channels, ejection."""
    channels, terminals = len(tables.target), len(leaf)
    for f in range(len(path) - 1):
        s, d = flows.source[f], flows.destination[f]
        link[path[f]] = channels + s
        v = leaf[s]
        for i in range(path[f] + 1, path[f + 1] - 1):
            link[i] = tables.channel_by_port[v, tables.egress[d, v]]
            v = tables.target[link[i]]
        link[path[f + 1] - 1] = channels + terminals + d
