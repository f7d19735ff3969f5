"""The levels of switches: their distance from the hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
