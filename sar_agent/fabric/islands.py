"""Islands: leaf switches near each other, level by level, as Slurm's topology file has them.

Leaves that reach each other over switches of the first levels are one island there. Each level's
islands are unions of those of the level below.
"""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.fabric.components import components_below
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import Fabric


def islands_of(fabric: Fabric, leaves: list[int]) -> Iterator[list[list[int]]]:
    """For each level of switches, from the leaves on: the islands, in the order of their first
    leaves, each in the order of `leaves`."""
    level = levels_of(fabric)
    for highest in range(int(level.max()) + 1):
        component = components_below(fabric, level, highest)
        islands: dict[int, list[int]] = {}
        for leaf in leaves:
            if level[leaf] <= highest:
                islands.setdefault(int(component[leaf]), []).append(leaf)
        yield list(islands.values())
