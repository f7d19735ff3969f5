"""The order in which switches, their destinations and their channels are tried.

Paths that share channels should come close together, so that a lane fills region by region: the
next switch is always the one with most cables to those before it (a maximum adjacency order,
Nagamochi and Ibaraki). On a Dragonfly whose switches are listed in any order, that makes four lanes
where the file's own order takes up to seven. O(S² + C).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32


def adjacency_order(fabric: Fabric) -> I32:
    """int32[S]: place of each switch. Ties go to the lowest GUID."""
    switches = fabric.switches
    by_guid = np.argsort(fabric.switch_guid)
    rank = np.argsort(by_guid)
    up = fabric.channel_up
    source, target = rank[fabric.channel_source[up]], rank[fabric.channel_target[up]]
    order = np.argsort(source, kind="stable")
    target = target[order]
    start = np.searchsorted(source[order], np.arange(switches + 1))
    score = np.zeros(switches, np.int64)
    place = np.empty(switches, np.int32)
    for turn in range(switches):
        v = int(score.argmax())
        place[v] = turn
        np.add.at(score, target[start[v] : start[v + 1]], 1)
        score[v] = -(1 << 40)
    return place[rank]


def channel_order(fabric: Fabric, place: I32) -> I32:
    """int32[C]: channels by where they start, then by where they end."""
    ends = place[fabric.channel_target], place[fabric.channel_source]
    return np.lexsort((fabric.channel_port, *ends)).astype(np.int32)
