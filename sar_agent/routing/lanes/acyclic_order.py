"""One lane's dependencies, kept free of cycles while they come one by one.

Each channel has a label, and labels are a topological order: where c1 waits for c2, c1's is the
smaller. A new dependency that agrees with the labels is just put in. One that does not starts a
search both ways between the two labels, forward from c2 and backward from c1, always on the side
that has cost less: where they meet there is a cycle; where a side runs out, what it found is moved
past the other end. Since a lane only gains dependencies, "closes a cycle" is final, so that each
dependency is judged once, whatever the number of paths that need it.

(Pearce and Kelly's one-sided search took 58 s where this takes 2: a Dragonfly of 2,064 switches.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.dag import U32

I64 = NDArray[np.int64]
PRESENT, FORBIDDEN = 1, 2
SEARCH_LIMIT = 3_000
"""Channels that one search may find before the dependency is given up: no cycle was proved, but
the paths fit another lane at less than the proof costs."""
_SPACING, _END = 1 << 40, 1 << 62


class ChannelPairs(NamedTuple):
    """Channels as lanes see them. A dependency of c1 on c2 is (c1, rank of c2 among the channels
    that leave the switch that c1 enters)."""

    offset: U32
    """uint32[S + 1]"""
    source: U32
    """uint32[C]"""
    target: U32
    """uint32[C]"""
    reverse: U32
    """uint32[C]"""
    channel: U32
    """uint32[S, P + 1]: the live channel that leaves s by a port; C where there is none, as by all
    ports from P on (column P)."""


class LaneOrder(NamedTuple):
    """Of C channels, W the most that leave a switch."""

    depends: U8
    """uint8[C, W]: whether c1 waits for each channel of the next switch: 0 unknown, `PRESENT`,
    `FORBIDDEN`."""
    waited: U8
    """uint8[C, W]: whether c2 is waited for by each channel that enters the switch it leaves; the
    rank is that of the channel's other direction."""
    label: I64
    """int64[C + 1]"""
    after: U32
    """uint32[C + 1]: the next by label; C is both ends."""
    before: U32
    """uint32[C + 1]"""


class OrderSearch(NamedTuple):
    """Scratch for one search at a time, whatever the lane."""

    found: U32
    """uint32[2, C]: forward, backward."""
    seen: I64
    """int64[C]: the last search that came by: 2 n forward, 2 n + 1 backward."""
    searches: I64
    """int64[1]: n."""


def net_of(fabric: Fabric) -> ChannelPairs:
    """The live channels."""
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    channel = np.full((fabric.switches, ports + 1), fabric.channels, np.uint32)
    up = np.flatnonzero(fabric.channel_up)
    channel[fabric.channel_source[up], fabric.channel_port[up]] = up
    return ChannelPairs(
        fabric.channel_offset.astype(np.uint32),
        fabric.channel_source.astype(np.uint32),
        fabric.channel_target.astype(np.uint32),
        fabric.channel_reverse.astype(np.uint32),
        channel,
    )


def lane_of(net: ChannelPairs, order: I32, depends: U8) -> LaneOrder:
    """A lane of these dependencies (uint8[C, W], `PRESENT` or 0; the array becomes the lane's) in
    a topological order int32[C] of them."""
    channels = len(net.target)
    ring = np.concatenate([order, [channels]]).astype(np.uint32)
    after, before = np.empty_like(ring), np.empty_like(ring)
    after[ring], before[ring] = np.roll(ring, -1), np.roll(ring, 1)
    label = np.zeros(channels + 1, np.int64)
    label[order] = np.arange(1, channels + 1) * _SPACING
    waited = np.zeros_like(depends)
    one, rank = np.nonzero(depends)
    base = net.offset[net.target[one]]
    waited[base + rank.astype(np.uint32), net.reverse[one] - base] = PRESENT
    return LaneOrder(depends, waited, label, after, before)


def empty_lane(net: ChannelPairs, order: I32, width: int) -> LaneOrder:
    """A lane without dependencies; `order` int32[C] is what labels begin with."""
    return lane_of(net, order, np.zeros((len(net.target), width), np.uint8))


def new_search(net: ChannelPairs) -> OrderSearch:
    """Nothing seen."""
    channels = max(1, len(net.target))
    return OrderSearch(
        np.empty((2, channels), np.uint32), np.zeros(channels, np.int64), np.zeros(1, np.int64)
    )


@njit(cache=True)
def judge(
    net: ChannelPairs, lane: LaneOrder, search: OrderSearch, c1: np.uint32, c2: np.uint32
) -> bool:  # pragma: no cover
    """Puts in that c1 waits for c2, of which nothing is known yet, if that closes no cycle; whether
    it is in."""
    base = net.offset[net.target[c1]]
    if lane.label[c1] > lane.label[c2] and not _reorder(net, lane, search, c1, c2):
        lane.depends[c1, c2 - base] = FORBIDDEN
        return False
    lane.depends[c1, c2 - base] = PRESENT
    lane.waited[c2, net.reverse[c1] - base] = PRESENT
    return True


@njit(cache=True)
def _reorder(
    net: ChannelPairs, lane: LaneOrder, search: OrderSearch, c1: np.uint32, c2: np.uint32
) -> bool:  # pragma: no cover
    """Gives c2 a larger label than c1, all else in order; False where a cycle stands against it,
    or the search takes too long."""
    search.searches[0] += 1
    forward, backward = 2 * search.searches[0], 2 * search.searches[0] + 1
    ahead, behind, seen = search.found[0], search.found[1], search.seen
    low, high = lane.label[c2], lane.label[c1]
    ahead[0], behind[0] = c2, c1
    seen[c2], seen[c1] = forward, backward
    one = np.uint32(1)
    i, j, found_ahead, found_behind = np.uint32(0), np.uint32(0), one, one
    cost = np.int64(0)  # of forward, less that of backward
    while i < found_ahead and j < found_behind:
        if found_ahead + found_behind > SEARCH_LIMIT:
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
                        ahead[found_ahead] = x
                        found_ahead += one
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
                        behind[found_behind] = x
                        found_behind += one
    if i == found_ahead:
        _move(lane, ahead[:found_ahead], c1)
    else:
        _move(lane, behind[:found_behind], lane.before[c2])
    return True


@njit(cache=True)
def _move(lane: LaneOrder, moved: U32, place: np.uint32) -> None:  # pragma: no cover
    """Puts channels (which are sorted by label for it) behind `place`, which is none of them."""
    label, after, before = lane.label, lane.after, lane.before
    end = np.uint32(len(label) - 1)
    step = len(moved) // 2
    while step:  # Shell's sort: numba's own takes ten seconds to compile
        for i in range(step, len(moved)):
            c, j = moved[i], i
            while j >= step and label[moved[j - step]] > label[c]:
                moved[j] = moved[j - step]
                j -= step
            moved[j] = c
        step //= 2
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
