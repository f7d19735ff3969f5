"""The whole dependency graph at once: where it has no cycle one lane is enough, as on trees."""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.fabric.model import I32, U8
from sar_agent.routing.lanes.acyclic_order import ChannelPairs


@njit(cache=True)
def topological_order(net: ChannelPairs, depends: U8) -> I32:  # pragma: no cover
    """int32[C]: all channels, none before one that waits for it; shorter where there is a cycle.

    `depends` is uint8[C, W], as `Lane.depends`. Kahn's peeling.
    """
    channels, one = np.uint32(len(net.target)), np.uint32(1)
    waiting = np.zeros(channels, np.int32)
    for each in range(channels):
        head = net.target[each]
        base = net.offset[head]
        for rank in range(net.offset[head + one] - base):
            waiting[base + rank] += depends[each, rank] == 1
    order = np.empty(channels, np.int32)
    taken = np.uint32(0)
    for first in range(channels):
        order[taken] = first
        taken += np.uint32(waiting[first] == 0)
    i = np.uint32(0)
    while i < taken:
        c = np.uint32(order[i])
        i += one
        head = net.target[c]
        base = net.offset[head]
        for rank in range(net.offset[head + one] - base):
            if depends[c, rank] == 1:
                waiting[base + rank] -= 1
                if waiting[base + rank] == 0:
                    order[taken] = base + rank
                    taken += one
    return order[:taken]
