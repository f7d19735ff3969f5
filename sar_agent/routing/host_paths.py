"""What the routes between hosts make channels wait for, before any other route is added."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.channel_dependencies import (
    collect_dependencies,
    empty_dependencies,
    offset_tables_of,
)
from sar_agent.routing.graph.csr import Graph, channel_graph_of
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.routing.updown_property import all_up_then_down


class HostPaths(NamedTuple):
    """The hosts' routes of one set of tables."""

    rise_then_fall: bool
    """Whether all shortest paths from hosts go up, then down: then none can close a loop."""
    rises: Bool
    """bool[C]: channels that lead further from the hosts."""
    depends: U8
    """uint8[C, W]: the dependencies; without rows where `rise_then_fall`."""

    def one_lane(self, fabric: Fabric) -> bool:
        """Whether they close no credit loop in one lane. O(C W)."""
        if self.rise_then_fall:
            return True
        order = dependency_order(channel_graph_of(fabric), self.depends)
        return len(order) == fabric.channels


def rise_then_fall(fabric: Fabric, graph: Graph, hops: U8, *, between_hosts: bool) -> bool:
    """Whether all shortest paths from hosts, to hosts or to all switches, go up, then down; `hops`
    uint8[S, S]."""
    level = levels_of(fabric)
    by_level = np.argsort(level, kind="stable").astype(np.uint32)
    hosts = fabric.terminals_at > 0
    # Contiguous rows, in either case: one compiled function serves both.
    to_roots = np.ascontiguousarray(hops[:, hosts]) if between_hosts else hops
    return bool(all_up_then_down(graph, to_roots, level, by_level, hosts))


def host_paths(fabric: Fabric, graph: Graph, hops: U8, egress: U8) -> HostPaths:
    """The hosts' routes of the tables `egress` uint8[T + S, S]; `hops` uint8[S, S]. O(D S) unless
    all shortest paths go up, then down."""
    level = levels_of(fabric)
    rises = level[fabric.channel_target] > level[fabric.channel_source]
    if rise_then_fall(fabric, graph, hops, between_hosts=False):
        return HostPaths(True, rises, np.zeros((0, 0), np.uint8))
    rows = np.zeros(fabric.destinations, np.bool_)
    rows[: fabric.terminals] = fabric.is_host_port
    depends = empty_dependencies(fabric, 1)
    collect_dependencies(
        offset_tables_of(fabric, egress, None, fabric.terminals_at > 0, rows), depends
    )
    return HostPaths(False, rises, depends[0])
