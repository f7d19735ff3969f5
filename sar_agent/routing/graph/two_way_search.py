"""A topological order that is kept while edges are inserted: two-way search with labels.

Each node has a label, and labels are a topological order: where x leads to y, x's is the smaller. A
new edge that agrees with the labels costs nothing. One that does not starts a search both ways
between the two labels, forward from y and backward from x, always on the side that has cost less so
far. Where they meet there is a cycle; where one side runs out, the nodes that it found move past
the other end. Labels are spread over 62 bits, so that hardly any move needs new ones for the nodes
in between (an order-maintenance list). An edge never leaves, so "closes a cycle" is final.

After B. Alpern et al., "Incremental evaluation of computational circuits", SODA 1990, who search
from both ends, and P. F. Dietz and D. D. Sleator, STOC 1987, for the labels.

A *lane* is such an order of channels: where c1 waits for c2, c1 leads to c2. Each dependency of a
lane is judged once, whatever the number of paths that need it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.shell_sort import sort_by
from sar_agent.routing.graph.successors import PRESENT, Successors, waited_for
from sar_agent.util.kernels import kernel_part, kernel_template

FORBIDDEN = 2
"""The value of a dependency that would close a cycle."""
SEARCH_LIMIT = 3_000
"""Channels that one search may find before it gives the dependency up: no cycle is proved then,
but to put the paths into another lane costs less than the proof."""
_SPACING, _END = 1 << 40, 1 << 62


class Order(NamedTuple):
    """The order of N nodes, and scratch for one search at a time."""

    label: I64
    """int64[N + 1]"""
    after: U32
    """uint32[N + 1]: the next node by label; N stands for both ends of the list."""
    before: U32
    """uint32[N + 1]: the node before by label."""
    nodes: U32
    """uint32[2, N]: what the search found forward, and backward."""
    seen: I64
    """int64[N]: the last search that came by, 2 n if forward and 2 n + 1 if backward."""
    searches: I64
    """int64[1]: n, the number of searches."""
    into: U32
    """uint32[largest degree]: successors or predecessors of one node."""


def new_order(order: I32 | I64 | U32, degree: int) -> Order:
    """The nodes in this order [N]: a topological one of the edges that there are. O(N)."""
    nodes = len(order)
    ring = np.concatenate([order, [nodes]]).astype(np.uint32)
    after, before = np.empty_like(ring), np.empty_like(ring)
    after[ring], before[ring] = np.roll(ring, -1), np.roll(ring, 1)
    label = np.zeros(nodes + 1, np.int64)
    label[order] = np.arange(1, nodes + 1) * _SPACING
    found, seen = np.empty((2, max(1, nodes)), np.uint32), np.zeros(max(1, nodes), np.int64)
    into = np.empty(max(1, degree), np.uint32)
    return Order(label, after, before, found, seen, np.zeros(1, np.int64), into)


@kernel_template
def admits(
    graph: Any,
    successors: Successors,
    predecessors: Successors,
    order: Order,
    x: np.uint32,
    y: np.uint32,
    limit: int,
) -> bool:
    """Whether the edge from x to y closes no cycle; the order then agrees with it, and the caller
    puts it into the graph. False, too, where the search finds more than `limit` nodes.

    O(1) where the labels agree. Else about twice the edges that the cheaper of the two searches
    looks at, and O(n^1.5) to sort the n nodes that it found.

    >>> edges = set()
    >>> def after(graph, node, into):
    ...     heads = [y for x, y in sorted(graph) if x == node]
    ...     into[: len(heads)] = heads
    ...     return len(heads)
    >>> def before(graph, node, into):
    ...     tails = [x for x, y in sorted(graph) if y == node]
    ...     into[: len(tails)] = tails
    ...     return len(tails)
    >>> order = new_order(np.arange(3), 3)
    >>> for edge in (2, 1), (1, 0), (0, 2):  # the third one closes a cycle
    ...     if admits(edges, after, before, order, *edge, 10):
    ...         edges.add(edge)
    >>> sorted(edges), np.argsort(order.label[:3]).tolist()
    ([(1, 0), (2, 1)], [2, 1, 0])
    """
    label, seen, into, one = order.label, order.seen, order.into, np.uint32(1)
    low, high = label[y], label[x]
    if high < low:
        return True
    order.searches[0] += 1
    forward, backward = 2 * order.searches[0], 2 * order.searches[0] + 1
    ahead, behind = order.nodes[0], order.nodes[1]
    ahead[0], behind[0] = y, x
    seen[y], seen[x] = forward, backward
    i, j, size_ahead, size_behind = np.uint32(0), np.uint32(0), one, one
    cost = np.int64(0)  # of forward, less that of backward
    while i < size_ahead and j < size_behind:
        if size_ahead + size_behind > limit or x == y:
            return False
        if cost <= 0:
            count = np.uint32(successors(graph, ahead[i], into))
            i += one
            cost += np.int64(count) + 1
            for k in range(count):
                node = into[k]
                if seen[node] == backward:
                    return False
                if seen[node] != forward and label[node] < high:
                    seen[node] = forward
                    ahead[size_ahead] = node
                    size_ahead += one
        else:
            count = np.uint32(predecessors(graph, behind[j], into))
            j += one
            cost -= np.int64(count) + 1
            for k in range(count):
                node = into[k]
                if seen[node] == forward:
                    return False
                if seen[node] != backward and label[node] > low:
                    seen[node] = backward
                    behind[size_behind] = node
                    size_behind += one
    if i == size_ahead:
        _move(order, ahead[:size_ahead], x)
    else:
        _move(order, behind[:size_behind], order.before[y])
    return True


@kernel_template
def _move(order: Order, moved: U32, place: np.uint32) -> None:
    """Sorts the nodes `moved` by label and puts them behind `place`, which is not among them."""
    label, after, before = order.label, order.after, order.before
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


class LaneOrder(NamedTuple):
    """One lane's dependencies and their order: C channels, W the most that leave a switch."""

    offset: U32
    """uint32[S + 1]"""
    source: U32
    """uint32[C]"""
    target: U32
    """uint32[C]"""
    reverse: U32
    """uint32[C]"""
    depends: U8
    """uint8[C, W]: for each channel c1 and rank of a channel that leaves the switch c1 enters:
    `PRESENT` where c1 waits for it, `FORBIDDEN`, or 0 where the dependency is not judged yet."""
    waited: U8
    """uint8[C, W], the same backward: for each channel c2 and rank of a channel's other direction
    at the switch c2 leaves, whether that channel waits for c2."""
    order: Order


def lane_of(net: ChannelGraph, order: I32 | U32, depends: U8) -> LaneOrder:
    """A lane with the dependencies `depends` uint8[C, W] (`PRESENT` or 0); `order` [C] is one of
    their topological orders. The lane keeps the array and changes it. O(C W)."""
    waited = np.zeros_like(depends)
    channel, rank = np.nonzero(depends)
    base = net.offset[net.target[channel]]
    waited[base + rank.astype(np.uint32), net.reverse[channel] - base] = PRESENT
    kept = new_order(order, depends.shape[1])
    return LaneOrder(net.offset, net.source, net.target, net.reverse, depends, waited, kept)


def empty_lane(net: ChannelGraph, order: I32, width: int) -> LaneOrder:
    """A lane without dependencies, whose labels begin with `order` int32[C]. O(C W)."""
    return lane_of(net, order, np.zeros((len(net.target), width), np.uint8))


@kernel_template
def _waiting_for(lane: LaneOrder, node: np.uint32, into: U32) -> np.uint32:
    """Predecessors: the channels that wait for channel `node`."""
    source = lane.source[node]
    base = lane.offset[source]
    count = np.uint32(0)
    for rank in range(lane.offset[source + np.uint32(1)] - base):
        if lane.waited[node, rank]:
            into[count] = lane.reverse[base + np.uint32(rank)]
            count += np.uint32(1)
    return count


@kernel_part
def judge(
    lane: LaneOrder, c1: np.uint32, c2: np.uint32, limit: int = SEARCH_LIMIT
) -> bool:  # pragma: no cover
    """Inserts "c1 waits for c2", which is not judged yet, if it closes no cycle in the lane and the
    search finds at most `limit` channels; whether it did.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> from sar_agent.routing.graph.csr import channel_graph_of
    >>> net = channel_graph_of(load_fabric("torus:3"))
    >>> lane = empty_lane(net, np.arange(6, dtype=np.int32), 2)
    >>> round = [np.flatnonzero((net.source == s) & (net.target == (s + 1) % 3)) for s in range(3)]
    >>> way = np.concatenate(round).astype(np.uint32)
    >>> [judge(lane, way[s], way[(s + 1) % 3]) for s in range(3)]
    [True, True, False]
    """
    base = lane.offset[lane.target[c1]]
    if not admits(lane, waited_for, _waiting_for, lane.order, c1, c2, limit):
        lane.depends[c1, c2 - base] = FORBIDDEN
        return False
    lane.depends[c1, c2 - base] = PRESENT
    lane.waited[c2, lane.reverse[c1] - base] = PRESENT
    return True
