"""Groups of switches with the same neighbours above, whose channels are priced side by side.

The leaf switches of a pod all have the same switches above, and so have, on a three-level tree, the
switches at one place of all pods. The weights of such *siblings* are stored side by side, switch
after switch for one upper neighbour, then for the next. The least of all ways up is then a loop
over contiguous numbers, which the compiler turns into vector instructions: 0.3 ns a channel instead
of 1.2.

A switch that lost a cable stays with its siblings; an infinite weight represents the missing
channel. A switch that shares its upper neighbours with too few others is in no group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel

ALONE = np.uint32(0xFFFFFFFF)
FEW = 4
"""The fewest siblings of a group: fewer are not worth it."""


class Siblings(NamedTuple):
    """G groups of siblings. Group g's upper neighbours are its *slots*: a channel's weight is at
    `first[g] + slot * size[g] + lane`, those of channels in no slot come after all groups."""

    group: U32
    """uint32[S]: the group of each switch, `ALONE` where it has no siblings."""
    lane: U32
    """uint32[S]: place of each switch in its group."""
    size: U32
    """uint32[G]"""
    slot: U32
    """uint32[G + 1] into `target`"""
    target: U32
    """uint32[·]: the switch at each slot, by rank."""
    first: U32
    """uint32[G]"""
    place: U32
    """uint32[C]: where each channel's weight is."""
    port: U8
    """uint8[places]: egress port of the channel there, 0 where there is none."""
    outside: U32
    """uint32[S + 1] into `channel`."""
    channel: U32
    """uint32[·]: each switch's live channels that are in no slot, …"""
    beyond: U32
    """uint32[·]: … and where they lead."""


def siblings_of(fabric: Fabric, graph: Graph) -> Siblings:
    """Groups of at least `FEW` switches; each switch is in one group at most. O(C · ports)."""
    level = levels_of(fabric)
    source = fabric.channel_source
    rises = graph.up & (level[fabric.channel_target] > level[source])
    ways = np.bincount(source[rises], minlength=fabric.switches)
    heads = np.argsort(-ways, kind="stable").astype(np.uint32)
    # Sorted here: compiling a sort takes numba ten seconds.
    by_rank = np.lexsort((graph.rank[graph.target], source)).astype(np.uint32)
    group, slot_of, size, slot, target = _group(graph, rises, heads, by_rank)
    lane = np.zeros(fabric.switches, np.uint32)
    grouped = np.flatnonzero(group != ALONE)
    by_group = grouped[np.argsort(group[grouped], kind="stable")]
    begin = np.cumsum(size) - size
    lane[by_group] = np.arange(len(by_group)) - begin[group[by_group]]
    room = np.diff(slot).astype(np.int64) * size
    first = np.cumsum(room) - room
    inside = slot_of != ALONE
    place = np.empty(fabric.channels, np.int64)
    g = group[source[inside]]
    place[inside] = first[g] + slot_of[inside].astype(np.int64) * size[g] + lane[source[inside]]
    outside = np.flatnonzero(~inside)
    place[outside] = room.sum() + np.arange(len(outside))
    port = np.zeros(room.sum() + len(outside) + 1, np.uint8)
    port[place] = graph.port
    alive = outside[graph.up[outside]]
    count = np.bincount(source[alive], minlength=fabric.switches)
    return Siblings(
        group,
        lane,
        size,
        slot,
        target,
        first.astype(np.uint32),
        place.astype(np.uint32),
        port,
        np.concatenate([[0], np.cumsum(count)]).astype(np.uint32),
        alive.astype(np.uint32),
        graph.target[alive],
    )


@kernel
def _group(
    graph: Graph, rises: Bool, heads: U32, by_rank: U32
) -> tuple[U32, U32, U32, U32, U32]:  # pragma: no cover
    """The group of each switch, slot of each channel, size of each group, slots and their switches.

    Switches with the most channels up come first; others that have some of the same neighbours
    join.
    """
    switches = len(graph.offset) - 1
    group = np.full(switches, ALONE, np.uint32)
    slot_of = np.full(len(graph.target), ALONE, np.uint32)
    size = np.zeros(switches, np.uint32)
    slot = np.zeros(switches + 1, np.uint32)
    target = np.empty(len(graph.target), np.uint32)
    begin = np.zeros(switches, np.uint32)  # first slot of each upper neighbour …
    known = np.full(switches, ALONE, np.uint32)  # … of this head
    taken = np.full(len(graph.target), ALONE, np.uint32)
    slots = np.empty(256, np.uint32)
    members = np.empty(switches, np.uint32)
    asked = np.full(switches, ALONE, np.uint32)
    groups = np.uint32(0)
    for head in heads:
        if group[head] != ALONE:
            continue
        ways = 0
        for i in range(graph.offset[head], graph.offset[head + np.uint32(1)]):
            if rises[by_rank[i]]:
                slots[ways] = by_rank[i]
                ways += 1
        if ways == 0:
            break
        base = slot[groups]
        for k in range(ways):
            w = graph.target[slots[k]]
            target[base + np.uint32(k)] = w
            taken[base + np.uint32(k)] = ALONE
            if known[w] != head:
                known[w] = head
                begin[w] = base + np.uint32(k)
        end = base + np.uint32(ways)
        count = np.uint32(0)
        for k in range(base, end):
            w = target[k]
            for back in range(graph.offset[w], graph.offset[w + np.uint32(1)]):
                u = graph.target[back]
                if asked[u] == head or group[u] != ALONE:
                    continue
                asked[u] = head
                # Each of u's ways up needs a slot of its own, and most slots should be used.
                fits = True
                used = 0
                for c in range(graph.offset[u], graph.offset[u + np.uint32(1)]):
                    if not rises[c]:
                        continue
                    t = graph.target[c]
                    at = begin[t] if known[t] == head else end
                    while at < end and target[at] == t and taken[at] == u:
                        at += np.uint32(1)
                    if at == end or target[at] != t:
                        fits = False
                        break
                    taken[at] = u
                    slots[used] = at - base
                    used += 1
                if fits and 2 * used > ways:
                    used = 0
                    for c in range(graph.offset[u], graph.offset[u + np.uint32(1)]):
                        if rises[c]:
                            slot_of[c] = slots[used]
                            used += 1
                    members[count] = u
                    count += np.uint32(1)
        if count < FEW:
            for u in members[:count]:
                for c in range(graph.offset[u], graph.offset[u + np.uint32(1)]):
                    slot_of[c] = ALONE
            continue
        for u in members[:count]:
            group[u] = groups
        size[groups] = count
        groups += np.uint32(1)
        slot[groups] = end
    return group, slot_of, size[:groups], slot[: groups + np.uint32(1)], target
