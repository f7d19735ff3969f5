"""The levels of switches, which are their distance from the hosts, and islands.

Leaves that reach each other over switches of the first levels are one island there. Each level's
islands are unions of those of the level below; Slurm's topology file has them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.components import components_below
from sar_agent.fabric.model import U8, Fabric


def levels_of(fabric: Fabric) -> U8:
    """uint8[S]: hops from the nearest leaf switch, over live cables."""
    return levels_above(fabric, fabric.leaves)


def levels_above(fabric: Fabric, leaves: NDArray[np.integer]) -> U8:
    """uint8[S]: hops from the nearest of these switches; also 0 where none of them is reached."""
    level = np.full(fabric.switches, 255, np.uint8)
    level[leaves] = 0
    source = fabric.channel_source[fabric.channel_up]
    target = fabric.channel_target[fabric.channel_up]
    for hops in range(1, 255):
        new = target[(level[source] == hops - 1) & (level[target] == 255)]
        if not len(new):
            break
        level[new] = hops
    level[level == 255] = 0
    return level


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
