"""What the routes between hosts make channels wait for, before any other route is added."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.channel_dependencies import (
    collect_dependencies,
    empty_dependencies,
    offset_tables_of,
)
from sar_agent.routing.graph.csr import channel_graph_of
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.routing.shortest_paths import ShortestPaths


class HostPaths(NamedTuple):
    """The hosts' routes of one set of tables."""

    shortest: ShortestPaths
    rises: Bool
    """bool[C]: channels that lead further from the hosts."""
    depends: U8
    """uint8[C, W]: the dependencies; without rows where all shortest paths rise, then fall."""

    def one_lane(self) -> bool:
        """Whether they close no credit loop in one lane. O(C W)."""
        if self.shortest.rise_then_fall:
            return True
        fabric = self.shortest.fabric
        order = dependency_order(channel_graph_of(fabric), self.depends)
        return len(order) == fabric.channels


def host_paths(shortest: ShortestPaths, egress: U8) -> HostPaths:
    """The hosts' routes of the tables `egress` uint8[T + S, S]. O(D S) unless all shortest paths
    rise, then fall."""
    fabric = shortest.fabric
    level = levels_of(fabric)
    rises = level[fabric.channel_target] > level[fabric.channel_source]
    if shortest.all_rise_then_fall:
        return HostPaths(shortest, rises, np.zeros((0, 0), np.uint8))
    rows = np.zeros(fabric.destinations, np.bool_)
    rows[: fabric.terminals] = fabric.is_host_port
    depends = empty_dependencies(fabric, 1)
    collect_dependencies(
        offset_tables_of(fabric, egress, None, fabric.terminals_at > 0, rows), depends
    )
    return HostPaths(shortest, rises, depends[0])
