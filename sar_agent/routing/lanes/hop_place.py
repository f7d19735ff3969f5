"""Each pair of channels gets the lowest lane in which it closes no cycle.

Pairs come in the order in which packets can pass them (a pair after all that can be before it), so
the lanes in which a pair's first channel is held are known when its turn comes. What waits for what
is a graph of (channel, lane), kept in a topological order by Pearce and Kelly's method: a new
edge that agrees with the order is just put in; one that does not is searched for from both ends,
between these ends only, and either closes a cycle or moves what was found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U16, U32
from sar_agent.routing.lanes.hop_pairs import Triples

UNPLACED = 255
PATIENCE, EFFORT = 300, 100_000_000
"""Nodes looked at for one edge, and for all together where there are fewer edges; past that, the
lane counts as closed to it. (Ten times as many took ten times as long on a Dragonfly of 2,064
switches, for the same two lanes.)"""


class _Lanes(NamedTuple):
    """What is placed so far. N = L · C nodes, lane · C + channel."""

    channel: I32
    """int32[S, P]: the channel behind a port, -1 where there is none."""
    source: I32
    target: I32
    port: I32
    offset: I32
    reverse: I32
    lane: U8
    """uint8[C · P]: lane of each pair, `UNPLACED`."""
    held: U16
    """uint16[C · P]: bit l: whoever takes the pair may hold its first channel in lane l, and the
    edge is in the order."""
    place: I32
    """int32[N]: place of each node in the topological order."""
    seen: I32
    found: I32
    """int32[N]: scratch."""


def place_pairs(fabric: Fabric, triples: Triples, max_lanes: int) -> U8 | None:
    """uint8[C · P]: lane of each pair that packets take, `UNPLACED` elsewhere; None where pairs
    close a cycle among themselves, or `max_lanes` are too few this way."""
    ports = len(triples.follows) // max(1, fabric.channels)
    channel = np.ascontiguousarray(fabric.channel_by_port[:, :ports])
    level = pair_levels(channel, fabric.channel_target, triples)
    if (level == CYCLE).any():
        return None
    order = np.argsort(level, kind="stable")[np.count_nonzero(level < 0) :]
    nodes = fabric.channels * max_lanes
    # In each lane channels that are held early stand first, so that little is to be moved.
    early = np.argsort(level.reshape(-1, ports).max(axis=1), kind="stable")
    place = np.empty(fabric.channels, np.int32)
    place[early] = np.arange(fabric.channels)
    place = (np.arange(max_lanes)[:, None] * fabric.channels + place).ravel().astype(np.int32)
    lanes = _Lanes(
        channel,
        fabric.channel_source,
        fabric.channel_target,
        fabric.channel_port,
        fabric.channel_offset,
        fabric.channel_reverse,
        np.full(len(level), UNPLACED, np.uint8),
        np.zeros(len(level), np.uint16),
        place,
        np.full(nodes, -1, np.int32),
        np.empty(nodes, np.int32),
    )
    placed = _place(
        lanes,
        triples,
        order.astype(np.uint32),
        max_lanes,
        max(PATIENCE, EFFORT // (1 + len(order))),
    )
    return lanes.lane if placed else None


UNUSED, CYCLE = -1, -2


@njit(cache=True)
def pair_levels(channel: I32, target: I32, triples: Triples) -> I32:  # pragma: no cover
    """int32[C · P]: how many pairs packets can pass before each at most; `UNUSED`, or `CYCLE` for
    those on or behind a cycle."""
    begins, follows = triples
    channels, words = begins.shape
    ports = np.uint32(channel.shape[1])
    pairs = np.uint32(channels * ports)
    before = np.zeros(pairs, np.int32)
    level = np.full(pairs, -1, np.int32)
    queue = np.empty(pairs, np.uint32)
    taken, one = np.uint32(0), np.uint32(1)
    for turn in range(2):
        for pair in range(pairs):
            if turn == 1 and level[pair] == CYCLE and before[pair] == 0:
                level[pair] = 0
                queue[taken] = pair
                taken += one
            c, q = np.uint32(pair // ports), np.uint32(pair % ports)
            if turn == 1:
                continue
            if begins[c, q >> np.uint32(6)] >> np.uint64(q & np.uint32(63)) & np.uint64(1):
                level[pair] = CYCLE
            any_next = np.uint64(0)
            for word in range(words):
                any_next |= follows[pair, word]
            if not any_next:
                continue
            level[pair] = CYCLE
            after = np.uint32(channel[np.uint32(target[c]), q]) * ports
            for then in range(ports):
                t = np.uint32(then)
                if follows[pair, t >> np.uint32(6)] >> np.uint64(t & np.uint32(63)) & np.uint64(1):
                    level[after + t] = CYCLE
                    before[after + t] += 1
    i = np.uint32(0)
    while i < taken:
        pair = queue[i]
        i += one
        c, q = np.uint32(pair // ports), np.uint32(pair % ports)
        after = np.uint32(channel[np.uint32(target[c]), q]) * ports
        for then in range(ports):
            t = np.uint32(then)
            if follows[pair, t >> np.uint32(6)] >> np.uint64(t & np.uint32(63)) & np.uint64(1):
                before[after + t] -= 1
                if before[after + t] == 0:
                    level[after + t] = level[pair] + 1
                    queue[taken] = after + t
                    taken += one
    return level


@njit(cache=True)
def _place(
    lanes: _Lanes, triples: Triples, order: U32, most: int, patience: int
) -> bool:  # pragma: no cover
    """Places all pairs of `order`; False where one fits in no lane."""
    begins, follows = triples
    ports, channels = np.uint32(lanes.channel.shape[1]), len(begins)
    wanted = np.zeros(len(follows), np.uint16)
    stamp = 0
    for c in range(channels):
        for p in range(ports):
            t = np.uint32(p)
            if begins[c, t >> np.uint32(6)] >> np.uint64(t & np.uint32(63)) & np.uint64(1):
                wanted[np.uint32(c * ports + t)] = 1
    for pair in order:
        first, out = np.uint32(pair // ports), np.uint32(pair % ports)
        then = np.uint32(lanes.channel[np.uint32(lanes.target[first]), out])
        chosen = -1
        for lane in range(most):
            lanes.lane[pair] = lane
            fits = True
            for held in range(most):
                if fits and wanted[pair] >> np.uint16(held) & np.uint16(1):
                    stamp += 2
                    x, y = held * channels + first, lane * channels + then
                    fits = _join(lanes, np.uint32(x), np.uint32(y), stamp, patience)
                    if fits:
                        lanes.held[pair] |= np.uint16(1) << np.uint16(held)
            if fits:
                chosen = lane
                break
            lanes.held[pair] = 0
        if chosen < 0:
            return False
        after = then * ports
        for p in range(ports):
            t = np.uint32(p)
            if follows[pair, t >> np.uint32(6)] >> np.uint64(t & np.uint32(63)) & np.uint64(1):
                wanted[after + t] |= np.uint16(1) << np.uint16(chosen)
    return True


@njit(cache=True)
def _join(
    lanes: _Lanes, x: np.uint32, y: np.uint32, stamp: int, patience: int
) -> bool:  # pragma: no cover
    """Whether x may wait for y: the order is then mended where needed."""
    place, seen, found = lanes.place, lanes.seen, lanes.found
    low, high = place[y], place[x]
    if high < low:
        return True
    if x == y:
        return False
    ports, channels = np.uint32(lanes.channel.shape[1]), np.uint32(len(lanes.source))
    # Forward from y up to x's place.
    found[0] = y
    seen[y] = stamp
    ahead, i = 1, 0
    while i < ahead:
        node = np.uint32(found[np.uint32(i)])
        i += 1
        lane, c = np.uint16(node // channels), np.uint32(node % channels)
        w = np.uint32(lanes.target[c])
        for q in range(ports):
            pair = np.uint32(c * ports + q)
            if not lanes.held[pair] >> lane & np.uint16(1):
                continue
            after = np.uint32(
                np.uint32(lanes.lane[pair]) * channels + np.uint32(lanes.channel[w, q])
            )
            if after == x:
                return False
            if place[after] < high and seen[after] != stamp:
                seen[after] = stamp
                found[np.uint32(ahead)] = after
                ahead += 1
        if ahead > patience:
            return False
    # Backward from x down to y's place.
    total, i = ahead + 1, ahead
    found[np.uint32(ahead)] = x
    seen[x] = stamp + 1
    while i < total:
        node = np.uint32(found[np.uint32(i)])
        i += 1
        own, c = np.uint32(node // channels), np.uint32(node % channels)
        v, port = np.uint32(lanes.source[c]), np.uint32(lanes.port[c])
        for out in range(lanes.offset[v], lanes.offset[v + np.uint32(1)]):
            c0 = np.uint32(lanes.reverse[np.uint32(out)])
            pair = np.uint32(c0 * ports + port)
            held = lanes.held[pair]
            if not held or lanes.lane[pair] != own:
                continue
            before = c0
            while held:
                if held & np.uint16(1) and place[before] > low and seen[before] != stamp + 1:
                    seen[before] = stamp + 1
                    found[np.uint32(total)] = before
                    total += 1
                held >>= np.uint16(1)
                before += channels
        if total > ahead + patience:
            return False
    mend_order(place, found, ahead, total)
    return True


@njit(cache=True)
def mend_order(place: I32, found: I32, ahead: int, total: int) -> None:  # pragma: no cover
    """Those before (found[ahead:total]) take the first of all their places, those after the rest;
    within each the order stays."""
    nodes = np.empty(total, np.int32)
    nodes[: total - ahead] = found[ahead:total]
    nodes[total - ahead :] = found[:ahead]
    _sort(nodes[: total - ahead], place)
    _sort(nodes[total - ahead :], place)
    places = np.empty(total, np.int32)
    for i in range(total):
        places[i] = place[nodes[i]]
    # Two sorted runs are merged.
    i, j, k = 0, total - ahead, 0
    merged = np.empty(total, np.int32)
    while k < total:
        if j == total or (i < total - ahead and places[i] < places[j]):
            merged[k] = places[i]
            i += 1
        else:
            merged[k] = places[j]
            j += 1
        k += 1
    for i in range(total):
        place[nodes[i]] = merged[i]


@njit(cache=True)
def _sort(nodes: I32, place: I32) -> None:  # pragma: no cover
    """Shell's sort by place: short, and compiled in no time."""
    gap = 1
    while 3 * gap + 1 < len(nodes):
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, len(nodes)):
            node = nodes[i]
            j = i
            while j >= gap and place[nodes[j - gap]] > place[node]:
                nodes[j] = nodes[j - gap]
                j -= gap
            nodes[j] = node
        gap //= 3
