"""At what rate flows run when they share links max-min fairly.

Max-min fair: no flow can get more without one that has no more than it getting less. Such rates
are unique, and known by this: every flow crosses a full link on which none is faster (its limit).
It is SimGrid's CM02 model, and what InfiniBand's round-robin arbiters come to with many packets
and without head-of-line blocking; it knows no buffers and no latency.

When a flow ends or starts, most rates stay. Those that its links limited are filled anew around
all others; then whoever has lost his limit, or stands in the way of a slower one, joins them, until
nobody does. What is left untouched has its limit still, so the result is exact.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from sar_agent.routing.dag import U32
from sar_lab.fluid.flow_links import FlowLinks

SAME = 1e-12
"""Rates and loads that differ by no more than this share are equal but for rounding."""


@njit(cache=True)
def set_max_min_rates(
    links: FlowLinks, running: U32, moving: U32, count: int
) -> None:  # pragma: no cover
    """Sets the rates of the `running` flows after a change.

    `moving[:count]` are the flows that may get another rate first of all, marked in `links.moves`:
    those that started, and those limited by a link where one ended. The rest of `moving` is room
    for more, uint32[F].
    """
    checked = 0
    while checked < count:
        if 2 * count > len(running):
            _fill(links, running)
            break
        checked = count
        for c in _fill(links, moving[:count]):
            carried = fastest = 0.0
            level = np.inf
            e = links.first[c]
            while e < len(links.link):
                f = links.flow[e]
                e = links.next[e]
                carried += links.rate[f]
                fastest = max(fastest, links.rate[f])
                if links.moves[f] and links.limit[f] == c:
                    level = links.rate[f]
            full = carried >= links.capacity[c] * (1 - SAME)
            e = links.first[c]
            while e < len(links.link):
                f = links.flow[e]
                e = links.next[e]
                rate = links.rate[f]
                lost = links.limit[f] == c and not (full and rate >= fastest * (1 - SAME))
                if not links.moves[f] and (lost or rate > level * (1 + SAME)):
                    links.moves[f] = True
                    moving[count] = f
                    count += 1
    for f in moving[:count]:
        links.moves[f] = False


@njit(cache=True)
def _fill(links: FlowLinks, flows: U32) -> list[np.uint32]:  # pragma: no cover
    """Progressive filling of these flows around the others, whose rates stay: all grow alike; when
    a link is full, those on it stop and the rest goes on. Returns the links that they cross.

    The next link to be full is the one with the least left for each of its growing flows. What a
    link has left for each only rises while others fill up, so keys in the heap are lower bounds,
    put right when they come to the top.
    """
    growing, rate = links.growing, links.rate
    touched = [np.uint32(0) for _ in range(0)]
    for f in flows:
        rate[f] = -1.0  # until its limit is found
        for c in links.link[links.path[f] : links.stop[f]]:
            if not growing[c]:
                touched.append(c)
            growing[c] += np.uint32(1)
    left = links.left
    heap = [(0.0, np.uint32(0)) for _ in range(0)]
    for c in touched:
        left[c] = links.capacity[c]
        e = links.first[c]
        while e < len(links.link):
            left[c] -= max(0.0, rate[links.flow[e]])
            e = links.next[e]
        heap.append((left[c] / growing[c], c))
    heapq.heapify(heap)
    waiting = len(flows)
    while waiting:
        bound, c = heapq.heappop(heap)
        if not growing[c]:
            continue
        each = left[c] / growing[c]
        if each > bound:
            heapq.heappush(heap, (each, c))
            continue
        each = max(0.0, each)  # the others may have left nothing
        e = links.first[c]
        while e < len(links.link):
            f = links.flow[e]
            e = links.next[e]
            if rate[f] < 0:
                rate[f] = each
                links.limit[f] = c
                waiting -= 1
                for m in links.link[links.path[f] : links.stop[f]]:
                    left[m] -= each
                    growing[m] -= np.uint32(1)
    return touched
