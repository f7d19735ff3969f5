"""Each pair of channels gets the lowest lane in which it closes no cycle.

Pairs come in the order in which packets can pass them (a pair after all that can be before it), so
the lanes in which packets may hold a pair's first channel are known when its turn comes. Which
(channel, lane) waits for which is a graph that gains edges only; its topological order is kept by
two-way search (`routing/graph/two_way_search.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U16, U32
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.two_way_search import Order, admits, new_order
from sar_agent.routing.lanes.channel_pairs import CYCLE, Triples, has_bit, pair_levels
from sar_agent.routing.lanes.place_paths import UNPLACED
from sar_agent.util.kernels import kernel, kernel_template

PATIENCE, EFFORT = 300, 100_000_000
"""Nodes that the search for one edge may visit, and those of all edges together where there are few
edges; past that, the lane counts as closed to the edge. (Ten times as many took ten times as long
on a Dragonfly of 2,064 switches, for the same two lanes.)"""


class _PlacedPairs(NamedTuple):
    """What is placed so far: a graph of N = L · C nodes, lane · C + channel."""

    net: ChannelGraph
    lane: U8
    """uint8[C · P]: lane of each pair, `UNPLACED`."""
    held: U16
    """uint16[C · P]: bit l is set where a packet that takes the pair may hold its first channel in
    lane l, and the edge is in the order."""


@kernel_template
def _after(graph: _PlacedPairs, node: np.uint32, into: U32) -> np.uint32:  # pragma: no cover
    """Successors: the (channel, lane) that packets in a (channel, lane) wait for. O(P)."""
    net = graph.net
    channels, ports = np.uint32(len(net.target)), np.uint32(net.channel.shape[1] - 1)
    lane, c = np.uint16(node // channels), np.uint32(node % channels)
    w = net.target[c]
    count = np.uint32(0)
    for n in range(ports):
        q = np.uint32(n)
        pair = c * ports + q
        if graph.held[pair] >> lane & np.uint16(1):
            into[count] = np.uint32(graph.lane[pair]) * channels + net.channel[w, q]
            count += np.uint32(1)
    return count


@kernel_template
def _before(graph: _PlacedPairs, node: np.uint32, into: U32) -> np.uint32:  # pragma: no cover
    """Predecessors: the (channel, lane) from which packets wait for this one. O(P lanes)."""
    net = graph.net
    channels, ports = np.uint32(len(net.target)), np.uint32(net.channel.shape[1] - 1)
    lane, c = np.uint32(node // channels), np.uint32(node % channels)
    s, port = net.source[c], np.uint32(net.port[c])
    count = np.uint32(0)
    for out in range(net.offset[s], net.offset[s + np.uint32(1)]):
        before = net.reverse[out]
        pair = before * ports + port
        held = graph.held[pair]
        if not held or graph.lane[pair] != lane:
            continue
        while held:
            if held & np.uint16(1):
                into[count] = before
                count += np.uint32(1)
            held >>= np.uint16(1)
            before += channels
    return count


def place_pairs(fabric: Fabric, net: ChannelGraph, triples: Triples, max_lanes: int) -> U8 | None:
    """uint8[C · P]: lane of each pair that packets take, `UNPLACED` elsewhere; None where pairs
    close a cycle among themselves, or where `max_lanes` are too few this way."""
    ports, channels = net.channel.shape[1] - 1, fabric.channels
    level = pair_levels(net, triples)
    if (level == CYCLE).any():
        return None
    order = np.argsort(level, kind="stable")[np.count_nonzero(level < 0) :]
    # In each lane the channels that are held early come first, so that few have to be moved.
    early = np.argsort(level.reshape(-1, ports).max(axis=1), kind="stable")
    nodes = (np.arange(max_lanes)[:, None] * channels + early).ravel()
    placed = _PlacedPairs(
        net, np.full(len(level), UNPLACED, np.uint8), np.zeros(len(level), np.uint16)
    )
    patience = max(PATIENCE, EFFORT // (1 + len(order)))
    kept = new_order(nodes, ports * max_lanes)
    fits = _place(placed, kept, triples, order.astype(np.uint32), max_lanes, patience)
    return placed.lane if fits else None


@kernel
def _place(
    placed: _PlacedPairs, kept: Order, triples: Triples, order: U32, max_lanes: int, patience: int
) -> bool:  # pragma: no cover
    """Places all pairs of `order`; False where one fits in no lane."""
    net = placed.net
    ports, channels = np.uint32(net.channel.shape[1] - 1), len(net.target)
    wanted = np.zeros(len(triples.follows), np.uint16)
    for n in range(len(wanted)):
        pair = np.uint32(n)
        wanted[pair] = has_bit(triples.begins, pair // ports, pair % ports)
    for pair in order:
        first, out = np.uint32(pair // ports), np.uint32(pair % ports)
        then = net.channel[net.target[first], out]
        chosen = -1
        for lane in range(max_lanes):
            placed.lane[pair] = lane
            fits = True
            for held in range(max_lanes):
                if fits and wanted[pair] >> np.uint16(held) & np.uint16(1):
                    x, y = np.uint32(held * channels + first), np.uint32(lane * channels + then)
                    fits = admits(placed, _after, _before, kept, x, y, patience)
                    if fits:
                        placed.held[pair] |= np.uint16(1) << np.uint16(held)
            if fits:
                chosen = lane
                break
            placed.held[pair] = 0
        if chosen < 0:
            return False
        for n in range(ports):
            q = np.uint32(n)
            if has_bit(triples.follows, pair, q):
                wanted[then * ports + q] |= np.uint16(1) << np.uint16(chosen)
    return True
