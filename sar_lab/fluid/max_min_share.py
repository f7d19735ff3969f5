"""The rates of flows that share links max-min fairly.

Rates are max-min fair if no flow can get more unless another flow, which has no more than it, gets
less. Such rates are unique, and they have this property: every flow crosses a full link, its limit,
on which no flow is faster. This is SimGrid's CM02 model. InfiniBand's round-robin arbiters approach
it with many packets and without head-of-line blocking. It has neither buffers nor latency.

When a flow ends or starts, most rates stay the same. The flows that its links limited get new rates
by progressive filling around all others. Then every flow that has lost its limit, or that slows a
slower flow down, joins them, until no flow does. All remaining flows still have their limit, so the
result is exact.
"""

from __future__ import annotations

import heapq

import numpy as np

from sar_agent.fabric.model import U32
from sar_agent.util.kernels import kernel, kernel_part
from sar_lab.fluid.flow_links import FlowLinks

SAME = 1e-12
"""Rates and loads that differ by no more than this share are equal but for rounding."""


@kernel
def set_max_min_rates(
    links: FlowLinks, running: U32, moving: U32, count: int
) -> None:  # pragma: no cover
    """Sets the rates of the `running` flows after a change.

    `moving[:count]` are the first flows whose rate may change, marked in `links.moves`: those that
    started, and those limited by a link of a flow that ended. The rest of `moving`, uint32[F], is
    room for further flows.
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


@kernel_part
def _fill(links: FlowLinks, flows: U32) -> list[np.uint32]:  # pragma: no cover
    """Progressive filling of these flows, while the rates of all others stay: all rates grow alike;
    when a link is full, its flows stop growing. Returns the links that the flows cross.

    The next link to become full is the one with the least capacity left for each of its growing
    flows. That share only rises while other links fill up, so the keys in the heap are lower
    bounds, which are corrected when they come to the top.
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
        each = max(0.0, each)  # the other flows may leave no capacity
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
