"""The cut bound of rings: how many messages a channel must carry at least.

What leaves a subtree in one phase crosses the channels that leave it, so one of these carries at
least the number of messages over that of channels, rounded up. The largest of these bounds that a
channel is part of is its limit.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_below
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import F64, I32
from sar_agent.routing.collectives.phase_demand import PhaseDemand


def ring_limits(fabric: Fabric, width: F64, demand: PhaseDemand) -> I32:
    """int32[C]: how many messages of rings each channel may carry, at least 1. `width` float64[C]:
    messages at full speed that a channel carries at once."""
    level = levels_of(fabric)
    source, target, live = fabric.channel_source, fabric.channel_target, fabric.channel_up
    items = np.flatnonzero(demand.ring)
    leaf = demand.leaf[items]
    root = fabric.terminal_switch[demand.destination[items]]
    most = np.zeros(fabric.channels)
    for highest in range(int(level.max(initial=0)) + 1):
        if highest == 0:  # leaf switches that are cabled to each other are no subtree
            part = np.arange(fabric.switches)
        else:
            part = components_below(fabric, level, highest)
        low = level <= highest
        leaving = part[leaf] != part[root]
        for end, near, far in ((leaf, source, target), (root, target, source)):
            cut = live & low[near] & ~(low[far] & (part[near] == part[far]))
            room = np.bincount(part[near[cut]], width[cut], fabric.switches)
            sent = np.bincount(part[end[leaving]], minlength=fabric.switches)
            bound = np.divide(sent, room, out=np.zeros(fabric.switches), where=room > 0)
            most[cut] = np.maximum(most[cut], bound[part[near[cut]]])
    limit = np.maximum(np.floor(width), np.ceil(most * width - 1e-9))
    return np.maximum(limit, 1).astype(np.int32)
