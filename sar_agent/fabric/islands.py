"""Islands: leaf switches near each other, level by level, as Slurm's topology file has them.

Leaves that reach each other over switches of the first levels are one island there. Each level's
islands are unions of those of the level below.
"""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import Fabric


def islands_of(fabric: Fabric, leaves: list[int]) -> Iterator[list[list[int]]]:
    """For each level of switches, from the leaves on: the islands, in the order of their first
    leaves, each in the order of `leaves`."""
    level = levels_of(fabric)
    for highest in range(int(level.max()) + 1):
        switches = [s for s in range(fabric.switches) if level[s] <= highest]
        yield _joined(fabric, switches, leaves)


def _joined(fabric: Fabric, switches: list[int], leaves: list[int]) -> list[list[int]]:
    """Groups of leaves that live links between these switches connect."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(switches)
    inside = set(switches)
    live = fabric.channel_up
    ends = zip(
        fabric.channel_source[live].tolist(), fabric.channel_target[live].tolist(), strict=True
    )
    graph.add_edges_from((s, t) for s, t in ends if s in inside and t in inside)
    groups = (
        [leaf for leaf in leaves if leaf in piece] for piece in nx.connected_components(graph)
    )
    return sorted((group for group in groups if group), key=lambda group: leaves.index(group[0]))
