"""Who may pass where while old tables and new ones coexist, switch by switch, in any order.

Between two sets of tables every mixture is possible: a switch may have the new entry for a
destination while the next still has the old. A packet's way in any of them is a way through the
graph in which each switch leads on by its old port and by its new: it visits no switch twice
(where there is no circle), so for each such way there is a mixture that takes it. One walk of that
graph, in the order of Kahn, sees all 2^S of them.

Three things can go wrong for one destination, and a fourth for all together:

- *Circle.* Old and new entries together lead a packet round.
- *Drop.* A packet whose old way was whole is sent, by a new entry, to a switch whose old entry
  leads nowhere. (Entries that lead nowhere now lose packets until the new ones come; that is no
  news, but nobody else may be sent to them.)
- *Credit loop.* Whoever passes a switch may hold the old channel or the new, and ask for the old
  or the new of the next: all four are dependencies, in old service levels and new, beside those of
  trees that stay. Packets of an earlier mixture may still be there in a later one, so it is the
  union over all of them that must be acyclic (sar-2016, Definition 6, condition 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.check.hop import Hops
from sar_agent.check.wiring import U32, Wiring
from sar_agent.fabric.model import I32, U8

FINE, CIRCLE, DROP = 0, 1, 2


class Walk(NamedTuple):
    """Scratch for one destination at a time; S switches."""

    row: U8
    """uint8[2, S], the old entries and the new: copies, so that one kernel serves tables that may
    be written to and others."""
    level: U8
    """uint8[2, S], or uint8[2, 0], likewise."""
    next: U32
    """uint32[2, S], where the old and the new entry lead."""
    degree: I32
    queue: U32
    mark: U32
    """uint32[2, S]: lanes of who leaves by the old and the new port."""
    seen: U8


@njit(cache=True)
def walk_of(wiring: Wiring, levels: int) -> Walk:  # pragma: no cover
    """Uninitialised."""
    size = wiring.sends.shape[1]
    return Walk(
        np.empty((2, size), np.uint8),
        np.empty((2, levels), np.uint8),
        np.empty((2, size), np.uint32),
        np.empty(size, np.int32),
        np.empty(size, np.uint32),
        np.empty((2, size), np.uint32),
        np.empty(size, np.uint8),
    )


@njit(cache=True)
def mix_trees(
    wiring: Wiring,
    hops: Hops,
    by_hop: bool,
    rows: tuple[U8, U8],
    levels: tuple[U8, U8],
    which: NDArray[np.bool_],
    mixed: U8,
) -> I32:  # pragma: no cover
    """int32[D]: FINE, CIRCLE or DROP of each destination in `which`, of one LID offset; puts the
    dependencies that any mixture may have into `mixed` uint8[2 L, S · P · P].

    `rows` and `levels` (uint8[D, S], or uint8[D, 0] in one lane) are old and new; old ones may be
    broken. With `by_hop` lanes are those of `hops`, in old tables and new. A tree with a circle has
    put in nothing.
    """
    found = np.zeros(len(which), np.int32)
    walk = walk_of(wiring, levels[0].shape[1])
    for d in range(len(which)):
        if not (which[d] and wiring.asks[d]):
            continue
        walk.row[0], walk.row[1] = rows[0][d], rows[1][d]
        walk.level[0], walk.level[1] = levels[0][d], levels[1][d]
        size = _order(wiring, d, walk)
        if size == 0:
            found[d] = CIRCLE
            continue
        if _drops(wiring, d, walk, size):
            found[d] = DROP
        _put_in(wiring, hops, by_hop, d, walk, size, mixed)
    return found


@njit(cache=True)
def _order(wiring: Wiring, d: int, walk: Walk) -> int:  # pragma: no cover
    """How many switches packets may pass, which are then in `walk.queue`, each after all that may
    send to it; 0 where some mixture leads packets round. (Some sender is always in it.)"""
    switches = np.uint32(wiring.sends.shape[1])
    ports, one = wiring.ports, np.uint32(1)
    for which in range(2):
        for s in range(switches):
            port = np.uint32(walk.row[which, s])
            walk.next[which, s] = wiring.next[s * (ports + one) + (port if port < ports else ports)]
    walk.seen[:] = 1
    size = _peel(walk, switches)
    if size == switches:
        return int(size)
    # Something is round; it matters only where packets come.
    walk.seen[:] = 0
    senders = wiring.sends[wiring.asks[d] - one]
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
        for which in range(2):
            w = walk.next[which, v]
            if w < switches and not walk.seen[w]:
                walk.seen[w] = 1
                walk.queue[depth] = w
                depth += one
                reached += one
    size = _peel(walk, switches)
    return int(size) if size == reached else 0


@njit(cache=True)
def _peel(walk: Walk, switches: np.uint32) -> np.uint32:  # pragma: no cover
    """Puts the switches `seen` into the queue in Kahn's order, as far as there is one."""
    walk.degree[:] = 0
    for which in range(2):
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
        for which in range(2):
            w = walk.next[which, v]
            if w < switches:
                walk.degree[w] -= 1
                if walk.degree[w] == 0:
                    walk.queue[taken] = w
                    taken += one
    return taken


@njit(cache=True)
def _drops(wiring: Wiring, d: int, walk: Walk, size: int) -> bool:  # pragma: no cover
    """Whether a packet whose old way is whole may be sent where the old entry leads nowhere."""
    switches, root = np.uint32(wiring.sends.shape[1]), np.uint32(wiring.root[d])
    dead = 0
    for i in range(size):
        v = walk.queue[i]
        dead += walk.next[0, v] >= switches and not (v == root and walk.row[0, v] == wiring.last[d])
    if not dead:
        return False
    good = walk.seen  # whether the old way from here is whole
    for i in range(size - 1, -1, -1):
        v = walk.queue[i]
        w = walk.next[0, v]
        good[v] = good[w] if w < switches else v == root and walk.row[0, v] == wiring.last[d]
    senders = wiring.sends[wiring.asks[d] - np.uint32(1)]
    for i in range(size):
        walk.degree[walk.queue[i]] = 0  # from now: whether packets with a whole old way come
    for i in range(size):
        v = walk.queue[i]
        if not (walk.degree[v] or (senders[v] and good[v])):
            continue
        if not good[v] and walk.next[0, v] >= switches:
            return True
        for which in range(2):
            if walk.next[which, v] < switches:
                walk.degree[walk.next[which, v]] = 1
    return False


@njit(cache=True)
def _put_in(
    wiring: Wiring,
    hops: Hops,
    by_hop: bool,
    d: int,
    walk: Walk,
    size: int,
    mixed: U8,
) -> None:  # pragma: no cover
    """All dependencies of one destination."""
    switches, ports, lanes = np.uint32(wiring.sends.shape[1]), wiring.ports, wiring.lanes
    one = np.uint32(1)
    kind = np.uint32(wiring.asks[d]) - one
    low = (one << lanes) - one
    for i in range(size):
        s = walk.queue[i]
        for which in range(2):
            walk.mark[which, s] = 0
            if by_hop:
                if walk.row[which, s] < ports:
                    walk.mark[which, s] = hops.begin[kind, s, walk.row[which, s]]
                continue
            for of in range(2):  # a connection keeps the service level it was made with
                lane = np.uint32(0)
                if walk.level.shape[1]:
                    lane = np.uint32(walk.level[of, s]) % lanes
                walk.mark[which, s] |= wiring.sends[kind, s] << lane
    for i in range(size):
        v = walk.queue[i]
        for which in range(2):
            w, passing = walk.next[which, v], walk.mark[which, v]
            if w >= switches or not passing:
                continue
            port = np.uint32(walk.row[which, v])
            for then in range(2):
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
