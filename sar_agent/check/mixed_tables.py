"""Proves all mixtures of tables that coexist while switches change over one by one, in any order.

Every mixture of two tables is possible: a switch may have the new entry for a destination while the
next switch still has the old one. A packet's path in any mixture is a path in the graph in which
each switch forwards by its old port and by its new port. Without a circle the packet visits no
switch twice, so for each path of the graph there is a mixture that takes it. One walk of the graph
in Kahn's order covers all 2^S mixtures.

There can be more than two tables: entries that a switch which has not confirmed may still have
instead of those it was sent, and earlier tables, whose packets may wait in buffers. Each switch
then has a set of entries, and the same walk covers all mixtures of the sets.

Three things can go wrong, the first two for one destination, the third for all together:

- *Circle.* The entries of a mixture lead a packet in a circle.
- *Drop.* A packet whose old path is complete (for some choice of the entries of unconfirmed
  switches) is forwarded by a new entry to a switch that may have an old entry which leads nowhere.
  (Entries that lead nowhere now lose packets until the new entries come. That is known, but no
  other packets may be sent to them.)
- *Credit loop.* A packet that passes a switch may hold the channel of any of its entries, and wait
  for that of any entry of the next switch. All of these are dependencies, in the service levels of
  all tables and those of earlier plans, beside the dependencies of trees that stay. Packets of an
  earlier mixture may still exist in a later one, so the union over all mixtures must be acyclic
  (sar-2016, Definition 6, condition 3).

The kernels are compiled for 2, 4 and 6 tables: the number is the length of a tuple, which the
compiler knows, so two tables take no longer than if there were no others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.hop_lanes import HopLanes
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import I32, U8, U16, U32
from sar_agent.util.kernels import kernel, kernel_part

FINE, CIRCLE, DROP = 0, 1, 2

Rows = tuple[U8, ...]
"""K times uint8[D, S], read-only: the old tables, the new ones, entries that switches may have
instead of the old (the old where all are confirmed), and earlier tables. K is 2 where only the
first two exist, else 4 or 6."""


class MixedWalk(NamedTuple):
    """Scratch arrays for one destination at a time; S switches, K tables."""

    row: U8
    """uint8[K, S], the entries."""
    lanes: U32
    """uint32[S], the lanes of the service levels in which each switch's hosts send; uint32[0] in
    one lane or hop by hop."""
    next: U32
    """uint32[K, S], the switch to which each entry leads."""
    degree: I32
    queue: U32
    mark: U32
    """uint32[K, S]: the lanes of the packets that leave by each entry's port."""
    seen: U8


@kernel_part
def walk_of(wiring: Wiring, tables: int, levels: int) -> MixedWalk:  # pragma: no cover
    """Scratch for this wiring, uninitialised."""
    size = wiring.sends.shape[1]
    return MixedWalk(
        np.empty((tables, size), np.uint8),
        np.empty(levels, np.uint32),
        np.empty((tables, size), np.uint32),
        np.empty(size, np.int32),
        np.empty(size, np.uint32),
        np.empty((tables, size), np.uint32),
        np.empty(size, np.uint8),
    )


@kernel
def mix_trees(
    wiring: Wiring,
    hops: HopLanes,
    by_hop: bool,
    rows: Rows,
    levels: Rows,
    handed: U16,
    which: NDArray[np.bool_],
    mixed: U8,
) -> I32:  # pragma: no cover
    """int32[D]: FINE, CIRCLE or DROP for each destination in `which`, of one LID offset; adds the
    dependencies that any mixture can have to `mixed` uint8[2 L, S · P · P].

    `levels` are those of `rows`, each uint8[D, S], or uint8[D, 0] in one lane; all but the new
    rows may be broken. `handed` uint16[D, S] (or uint16[D, 0]) are bit sets of levels that
    connections still use. With `by_hop` the lanes are those of `hops`, in all tables. A tree with
    a circle adds nothing.
    """
    outcome = np.zeros(len(which), np.int32)
    walk = walk_of(wiring, len(rows), levels[0].shape[1])
    for d in range(len(which)):
        if not (which[d] and wiring.destination_kind[d]):
            continue
        for k in range(len(rows)):
            walk.row[k] = rows[k][d]
        size = _order(wiring, d, walk, rows)
        if size == 0:
            outcome[d] = CIRCLE
            continue
        if _drops(wiring, d, walk, size, rows):
            outcome[d] = DROP
        _find_lanes(wiring, d, walk, levels, handed)
        _add_dependencies(wiring, hops, by_hop, d, walk, size, rows, mixed)
    return outcome


@kernel_part
def _order(wiring: Wiring, d: int, walk: MixedWalk, rows: Rows) -> int:  # pragma: no cover
    """The number of switches that packets can pass; 0 where some mixture has a circle. They are
    then in `walk.queue`, each after all that can forward to it. (At least one has a sender.)"""
    switches = np.uint32(wiring.sends.shape[1])
    ports, one = wiring.ports, np.uint32(1)
    for which in range(len(rows)):
        for s in range(switches):
            port = np.uint32(walk.row[which, s])
            walk.next[which, s] = wiring.next[s * (ports + one) + (port if port < ports else ports)]
    walk.seen[:] = 1
    size = _peel(walk, switches, rows)
    if size == switches:
        return int(size)
    # There is a circle; it matters only where packets can come.
    walk.seen[:] = 0
    senders = wiring.sends[wiring.destination_kind[d] - one]
    depth = np.uint32(0)
    for s in range(switches):
        if senders[s]:
            walk.seen[s] = 1
            walk.queue[depth] = s
            depth += one
    reached = depth
    while depth:
        depth -= one
        v = walk.queue[depth]
        for which in range(len(rows)):
            w = walk.next[which, v]
            if w < switches and not walk.seen[w]:
                walk.seen[w] = 1
                walk.queue[depth] = w
                depth += one
                reached += one
    size = _peel(walk, switches, rows)
    return int(size) if size == reached else 0


@kernel_part
def _peel(walk: MixedWalk, switches: np.uint32, rows: Rows) -> np.uint32:  # pragma: no cover
    """Puts the switches `seen` into the queue in Kahn's order, up to a circle; returns how many."""
    walk.degree[:] = 0
    for which in range(len(rows)):
        for s in range(switches):
            w = walk.next[which, s]
            if w < switches:
                walk.degree[w] += walk.seen[s]
    taken, i, one = np.uint32(0), np.uint32(0), np.uint32(1)
    for s in range(switches):
        if walk.seen[s] and walk.degree[s] == 0:
            walk.queue[taken] = s
            taken += one
    while i < taken:
        v = walk.queue[i]
        i += one
        for which in range(len(rows)):
            w = walk.next[which, v]
            if w < switches:
                walk.degree[w] -= 1
                if walk.degree[w] == 0:
                    walk.queue[taken] = w
                    taken += one
    return taken


@kernel_part
def _drops(
    wiring: Wiring, d: int, walk: MixedWalk, size: int, rows: Rows
) -> bool:  # pragma: no cover
    """Whether a packet whose old path may be complete can come to an old entry that leads nowhere.

    Old entries are those of tables 0 and 2; no switch has the entries of earlier tables any more.
    """
    switches, root, last = np.uint32(wiring.sends.shape[1]), wiring.root[d], wiring.last[d]
    olds = min(len(rows), 3)
    dead = 0
    for i in range(size):
        v = walk.queue[i]
        for k in range(0, olds, 2):
            dead += walk.next[k, v] >= switches and not (v == root and walk.row[k, v] == last)
    if not dead:
        return False
    good = walk.seen  # whether an old path from here is complete
    for i in range(size - 1, -1, -1):
        v = walk.queue[i]
        whole = False
        for k in range(0, olds, 2):
            w = walk.next[k, v]
            whole |= good[w] > 0 if w < switches else v == root and walk.row[k, v] == last
        good[v] = whole
    senders = wiring.sends[wiring.destination_kind[d] - np.uint32(1)]
    come = walk.degree  # packets with a complete old path: 1 still on it, 2 led off it
    for i in range(size):
        v = walk.queue[i]
        come[v] = 1 if senders[v] and good[v] else 0
    for i in range(size):
        v = walk.queue[i]
        if not come[v]:
            continue
        led = off = come[v] & 2
        for k in range(0, olds, 2):
            w = walk.next[k, v]
            if w < switches:
                come[w] |= come[v] if good[w] else led
                off |= 2 if good[w] and walk.row[k, v] != walk.row[1, v] else 0
            elif not (v == root and walk.row[k, v] == last):
                if come[v] & 2:
                    return True
            else:
                off |= 2 if walk.row[1, v] != last else 0
        if walk.next[1, v] < switches:
            come[walk.next[1, v]] |= off
    return False


@kernel_part
def _find_lanes(
    wiring: Wiring, d: int, walk: MixedWalk, levels: Rows, handed: U16
) -> None:  # pragma: no cover
    """The lanes in which each switch's hosts send: a connection keeps the service level with which
    it was established."""
    one = np.uint32(1)
    for s in range(len(walk.lanes)):
        lanes = np.uint32(0)
        for k in range(len(levels)):
            lanes |= one << np.uint32(levels[k][d, s]) % wiring.lanes
        left, level = np.uint32(handed[d, s]) if handed.shape[1] else np.uint32(0), np.uint32(0)
        while left:
            if left & one:
                lanes |= one << level % wiring.lanes
            left >>= one
            level += one
        walk.lanes[s] = lanes


@kernel_part
def _add_dependencies(
    wiring: Wiring,
    hops: HopLanes,
    by_hop: bool,
    d: int,
    walk: MixedWalk,
    size: int,
    rows: Rows,
    mixed: U8,
) -> None:  # pragma: no cover
    """Adds all dependencies of one destination to `mixed`."""
    switches, ports, lanes = np.uint32(wiring.sends.shape[1]), wiring.ports, wiring.lanes
    one = np.uint32(1)
    kind = np.uint32(wiring.destination_kind[d]) - one
    low = (one << lanes) - one
    for i in range(size):
        s = walk.queue[i]
        for which in range(len(rows)):
            walk.mark[which, s] = 0
            if by_hop:
                if walk.row[which, s] < ports:
                    walk.mark[which, s] = hops.begin[kind, s, walk.row[which, s]]
            elif not len(walk.lanes):
                walk.mark[which, s] = wiring.sends[kind, s]
            else:  # marks begin in lane 0: for hosts bit 0, for others bit L
                own = wiring.sends[kind, s]
                walk.mark[which, s] = walk.lanes[s] if own & low else np.uint32(0)
                if own >> lanes:
                    walk.mark[which, s] |= walk.lanes[s] << lanes
    for i in range(size):
        v = walk.queue[i]
        for which in range(len(rows)):
            w, passing = walk.next[which, v], walk.mark[which, v]
            if w >= switches or not passing:
                continue
            port = np.uint32(walk.row[which, v])
            for then in range(len(rows)):
                asked = np.uint32(walk.row[then, w])
                if asked >= ports:
                    continue
                if by_hop:
                    lane = np.uint32(hops.lane[w, hops.entry[v, port], asked])
                    if passing & low:
                        walk.mark[then, w] |= one << lane
                    if passing >> lanes:
                        walk.mark[then, w] |= one << (lanes + lane)
                else:
                    walk.mark[then, w] |= passing
                at = (v * ports + port) * ports + asked
                left, plane = passing, np.uint32(0)
                while left:
                    if left & one:
                        mixed[plane, at] = 1
                    left >>= one
                    plane += one
