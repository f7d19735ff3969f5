"""A topological order that is kept while very many edges are inserted: two-way search with labels.

Each channel has a label, and labels are a topological order: where c1 waits for c2, c1's is the
smaller. A new dependency that agrees with the labels costs nothing. One that does not starts a
search both ways between the two labels, forward from c2 and backward from c1, always on the side
that has cost less so far. Where they meet there is a cycle; where one side runs out, the channels
that it found move past the other end. Labels are spread over 62 bits, so that hardly any move
needs new ones for the channels in between (an order-maintenance list). A lane only ever gains
dependencies, so "closes a cycle" is final, and each dependency is judged once, whatever the number
of paths that need it.

After B. Alpern et al., "Incremental evaluation of computational circuits", SODA 1990, who search
from both ends, and P. F. Dietz and D. D. Sleator, STOC 1987, for the labels. (Pearce's and Kelly's
algorithm took 58 s where this takes 2: lanes by path for a Dragonfly of 2,064 switches. Lanes
chosen hop by hop insert few edges that disagree: `pearce_kelly.py`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.shell_sort import sort_by
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.util.kernels import kernel_part

FORBIDDEN = 2
"""The value of a dependency that would close a cycle."""
SEARCH_LIMIT = 3_000
"""Channels that one search may find before it gives the dependency up: no cycle is proved then,
but to put the paths into another lane costs less than the proof."""
_SPACING, _END = 1 << 40, 1 << 62


class LaneOrder(NamedTuple):
    """One lane's dependencies and their order: C channels, W the most that leave a switch."""

    depends: U8
    """uint8[C, W]: for each channel c1 and rank of a channel that leaves the switch c1 enters:
    `PRESENT` where c1 waits for it, `FORBIDDEN`, or 0 where the dependency is not judged yet."""
    waited: U8
    """uint8[C, W], the same backward: for each channel c2 and rank of a channel's other direction
    at the switch c2 leaves, whether that channel waits for c2."""
    label: I64
    """int64[C + 1]"""
    after: U32
    """uint32[C + 1]: the next channel by label; C stands for both ends of the list."""
    before: U32
    """uint32[C + 1]: the channel before by label."""


class OrderSearch(NamedTuple):
    """Scratch for one search at a time; all lanes of a fabric share it."""

    nodes: U32
    """uint32[2, C]: forward, backward."""
    seen: I64
    """int64[C]: the last search that came by, 2 n if forward and 2 n + 1 if backward."""
    searches: I64
    """int64[1]: n, the number of searches."""


def lane_of(net: ChannelGraph, order: I32 | U32, depends: U8) -> LaneOrder:
    """A lane with the dependencies `depends` uint8[C, W] (`PRESENT` or 0); `order` [C] is one of
    their topological orders. The lane keeps the array and changes it. O(C W)."""
    channels = len(net.target)
    ring = np.concatenate([order, [channels]]).astype(np.uint32)
    after, before = np.empty_like(ring), np.empty_like(ring)
    after[ring], before[ring] = np.roll(ring, -1), np.roll(ring, 1)
    label = np.zeros(channels + 1, np.int64)
    label[order] = np.arange(1, channels + 1) * _SPACING
    waited = np.zeros_like(depends)
    channel, rank = np.nonzero(depends)
    base = net.offset[net.target[channel]]
    waited[base + rank.astype(np.uint32), net.reverse[channel] - base] = PRESENT
    return LaneOrder(depends, waited, label, after, before)


def empty_lane(net: ChannelGraph, order: I32, width: int) -> LaneOrder:
    """A lane without dependencies, whose labels begin with `order` int32[C]. O(C W)."""
    return lane_of(net, order, np.zeros((len(net.target), width), np.uint8))


def new_order_search(net: ChannelGraph) -> OrderSearch:
    """Scratch that no search has used. O(C)."""
    channels = max(1, len(net.target))
    return OrderSearch(
        np.empty((2, channels), np.uint32), np.zeros(channels, np.int64), np.zeros(1, np.int64)
    )


@kernel_part
def judge(
    net: ChannelGraph,
    lane: LaneOrder,
    search: OrderSearch,
    c1: np.uint32,
    c2: np.uint32,
    limit: int = SEARCH_LIMIT,
) -> bool:  # pragma: no cover
    """Inserts "c1 waits for c2", which is not judged yet, if it closes no cycle in the lane and the
    search finds at most `limit` channels; whether it did.

    O(1) where the labels agree. Else about twice the edges that the cheaper of the two searches
    looks at, and O(n^1.5) to sort the n channels that it found.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> from sar_agent.routing.graph.csr import channel_graph_of
    >>> net = channel_graph_of(load_fabric("torus:3"))
    >>> lane, search = empty_lane(net, np.arange(6, dtype=np.int32), 2), new_order_search(net)
    >>> round = [np.flatnonzero((net.source == s) & (net.target == (s + 1) % 3)) for s in range(3)]
    >>> way = np.concatenate(round).astype(np.uint32)
    >>> from numba import njit
    >>> judged = njit(lambda *given: judge(*given))
    >>> [judged(net, lane, search, way[s], way[(s + 1) % 3]) for s in range(3)]
    [True, True, False]
    """
    base = net.offset[net.target[c1]]
    if lane.label[c1] > lane.label[c2] and not _reorder(net, lane, search, c1, c2, limit):
        lane.depends[c1, c2 - base] = FORBIDDEN
        return False
    lane.depends[c1, c2 - base] = PRESENT
    lane.waited[c2, net.reverse[c1] - base] = PRESENT
    return True


@kernel_part
def _reorder(
    net: ChannelGraph,
    lane: LaneOrder,
    search: OrderSearch,
    c1: np.uint32,
    c2: np.uint32,
    limit: int,
) -> bool:  # pragma: no cover
    """Gives c2 a larger label than c1 and keeps the order of all others; False where that would
    close a cycle, or where the search passes `limit`."""
    search.searches[0] += 1
    forward, backward = 2 * search.searches[0], 2 * search.searches[0] + 1
    ahead, behind, seen = search.nodes[0], search.nodes[1], search.seen
    low, high = lane.label[c2], lane.label[c1]
    ahead[0], behind[0] = c2, c1
    seen[c2], seen[c1] = forward, backward
    one = np.uint32(1)
    i, j, size_ahead, size_behind = np.uint32(0), np.uint32(0), one, one
    cost = np.int64(0)  # of forward, less that of backward
    while i < size_ahead and j < size_behind:
        if size_ahead + size_behind > limit:
            return False
        if cost <= 0:
            c = ahead[i]
            i += one
            head = net.target[c]
            base = net.offset[head]
            degree = net.offset[head + one] - base
            cost += np.int64(degree)
            for rank in range(degree):
                if lane.depends[c, rank] == PRESENT:
                    x = np.uint32(base + rank)
                    if seen[x] == backward:
                        return False
                    if seen[x] != forward and lane.label[x] < high:
                        seen[x] = forward
                        ahead[size_ahead] = x
                        size_ahead += one
        else:
            c = behind[j]
            j += one
            tail = net.source[c]
            base = net.offset[tail]
            degree = net.offset[tail + one] - base
            cost -= np.int64(degree)
            for rank in range(degree):
                if lane.waited[c, rank]:
                    x = net.reverse[base + rank]
                    if seen[x] == forward:
                        return False
                    if seen[x] != backward and lane.label[x] > low:
                        seen[x] = backward
                        behind[size_behind] = x
                        size_behind += one
    if i == size_ahead:
        _move(lane, ahead[:size_ahead], c1)
    else:
        _move(lane, behind[:size_behind], lane.before[c2])
    return True


@kernel_part
def _move(lane: LaneOrder, moved: U32, place: np.uint32) -> None:  # pragma: no cover
    """Sorts the channels `moved` by label and puts them behind `place`, which is not among them."""
    label, after, before = lane.label, lane.after, lane.before
    end = np.uint32(len(label) - 1)
    sort_by(moved, label)
    for c in moved:
        after[before[c]] = after[c]
        before[after[c]] = before[c]
    low = label[place] if place != end else -_END
    high = label[after[place]] if after[place] != end else _END
    gap = high // (len(moved) + 1) - low // (len(moved) + 1) - 1
    tight = gap < 1
    at = place
    value = low
    for c in moved:
        after[c], before[c] = after[at], at
        before[after[at]] = c
        after[at] = c
        at = c
        value += gap
        label[c] = value
    if tight:
        value, at = 0, after[end]
        while at != end:
            value += _SPACING
            label[at] = value
            at = after[at]
