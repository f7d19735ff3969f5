"""Groups of output ports for adaptive routing in the packet simulator.

A switch of a real fabric has a table from LIDs to groups of ports. `minimal_groups` are what a
subnet manager sets up without knowing the jobs: every port on a shortest path up, then down.
`table_groups` have one port each, that of the forwarding tables: no adaptation. `job_groups` are
between the two: at each switch, the ports that the tables of an engine such as sar-plus use there
for any host of the destination's jobs. A job then adapts within what the engine gave to it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.routes import Routes
from sar_agent.routing.updn import tree_order
from sar_agent.routing.updown_paths import Orientation, RootDistances, legal_row, new_row
from sar_agent.util.kernels import kernel
from sar_lab.research.packets.packet_events import PortGroups


def minimal_groups(fabric: Fabric) -> PortGroups:
    """All ports on shortest paths up, then down. Raises `Unserved` where the fabric is no tree."""
    return _groups(fabric, _minimal(fabric))


def table_groups(fabric: Fabric, routes: Routes) -> PortGroups:
    """The port of the tables alone."""
    return _groups(fabric, _used(fabric, routes))


def job_groups(fabric: Fabric, routes: Routes, mix: JobMix) -> PortGroups:
    """The minimal ports that the tables use for a host of the destination's jobs; the tables' own
    port for destinations in no job. Raises `Unserved` where the fabric is no tree."""
    used, minimal = _used(fabric, routes), _minimal(fabric)
    allowed = used.copy()
    for job in mix.jobs:
        of_job = used[:, job.terminals].any(axis=1)
        for d in job.terminals:
            allowed[:, d] |= of_job & minimal[:, d]
    return _groups(fabric, allowed)


def _used(fabric: Fabric, routes: Routes) -> Bool:
    """bool[C, T]: the channel that the tables use at its switch for each terminal."""
    channel = routes.next_channel(fabric)[: fabric.terminals]
    used = np.zeros((fabric.channels, fabric.terminals), np.bool_)
    d, s = np.nonzero((channel >= 0) & (channel < fabric.channels))
    used[channel[d, s], d] = True
    return used


def _minimal(fabric: Fabric) -> Bool:
    """bool[C, T]: whether the channel leads closer to each terminal."""
    graph = graph_of(fabric)
    legal = tree_order(fabric, graph)
    closer = np.zeros((fabric.channels, fabric.switches), np.bool_)
    _closer(graph, legal, new_row(fabric), fabric.leaves.astype(np.uint32), closer)
    minimal: Bool = closer[:, fabric.terminal_switch]
    return minimal


@kernel
def _closer(
    graph: Graph, legal: Orientation, row: RootDistances, leaves: U32, closer: Bool
) -> None:  # pragma: no cover
    for root in leaves:
        legal_row(graph, legal, row, root)
        for i in range(row.size[0]):
            for e in range(row.start[i], row.start[np.uint32(i + 1)]):
                closer[row.edge[e], root] = True


def _groups(fabric: Fabric, allowed: Bool) -> PortGroups:
    """Of bool[C, T]: entry s T + d holds the allowed channels of s, in the order of ports."""
    c, d = np.nonzero(allowed)
    entry = fabric.channel_source[c].astype(np.int64) * fabric.terminals + d
    order = np.argsort(entry, kind="stable")
    size = np.bincount(entry, minlength=fabric.switches * fabric.terminals)
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.uint32)
    return PortGroups(start, c[order].astype(np.uint32))
