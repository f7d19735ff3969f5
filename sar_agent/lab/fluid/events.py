"""From event to event: rates hold until the next flow ends."""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.lab.fluid.flows import Flows
from sar_agent.lab.fluid.links import F64, Links, end_flow, start_flow
from sar_agent.lab.fluid.share import share
from sar_agent.routing.dag import U32

DONE = 1e-9
"""A flow with no more than this share of its size to go has ended: what ends together on paper
ends together here, whatever the rounding."""


@njit(cache=True)
def end_times(links: Links, flows: Flows) -> F64:  # pragma: no cover
    """float64[F], seconds. `links` is used up."""
    to_go = flows.size.copy()
    end = np.zeros(len(to_go))
    step = np.searchsorted(flows.step, np.arange(len(flows.last) + 1))
    unfinished = np.diff(step)
    starting = [p for p in range(len(flows.last)) if p == 0 or flows.last[p - 1]]
    running, moving = np.empty(len(to_go), np.uint32), np.empty(len(to_go), np.uint32)
    ended = np.empty(len(to_go), np.uint32)
    count = gone = 0
    now = 0.0
    while True:
        movers = 0
        for p in starting:
            for f in range(step[p], step[p + 1]):
                start_flow(links, np.uint32(f))
                running[count] = f
                count += 1
                links.moves[f] = True
                moving[movers] = f
                movers += 1
        starting.clear()
        if not count:
            return end
        for f in ended[:gone]:
            movers = _freed(links, f, moving, movers)
        share(links, running[:count], moving, movers)
        seconds = np.inf
        for f in running[:count]:
            seconds = min(seconds, to_go[f] / links.rate[f])
        now += seconds
        kept = gone = 0
        for f in running[:count]:
            to_go[f] -= seconds * links.rate[f]
            if to_go[f] > DONE * flows.size[f]:
                running[kept] = f
                kept += 1
                continue
            end[f] = now
            end_flow(links, f)
            ended[gone] = f
            gone += 1
            p = flows.step[f]
            unfinished[p] -= 1
            if not unfinished[p] and not flows.last[p]:
                starting.append(p + 1)
        count = kept


@njit(cache=True)
def _freed(links: Links, ended: np.uint32, moving: U32, count: int) -> int:  # pragma: no cover
    """Adds to `moving[:count]` the flows that this one's links limit; returns the new count."""
    for c in links.link[links.path[ended] : links.path[ended + 1]]:
        for f in links.user[links.room[c] : links.room[c] + links.users[c]]:
            if links.limit[f] == c and not links.moves[f]:
                links.moves[f] = True
                moving[count] = f
                count += 1
    return count
