"""Other shortest paths, where those of an engine allow no lanes hop by hop.

Ties decide: on a Dragonfly some pairs of switches have, beside local, global, local, as short a way
over two global cables, and paths that mix them close a cycle of channel pairs (`hop.py`). So each
entry keeps the engine's port where no cycle closes, and takes another shortest one where it would;
first of all one that asks for nothing new, so that paths of a kind stay together. What has one
shortest path only is put in before: where these alone close a cycle, no shortest paths can be
helped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32, U64, Bool
from sar_agent.routing.lanes.hop_pairs import Triples
from sar_agent.routing.lanes.hop_place import CYCLE, mend_order, pair_levels

PATIENCE = 3000
"""Pairs looked at for one new dependency; past that, it counts as closing a cycle."""


class _Pairs(NamedTuple):
    """Pairs in a topological order; pair (c, q) is c · P + q."""

    channel: I32
    """int32[S, P]: live channel behind a port, -1 where there is none."""
    source: I32
    target: I32
    port: I32
    offset: I32
    reverse: I32
    follows: U64
    """uint64[C · P, W], as `Triples.follows`, of what was put in."""
    place: I32
    """int32[C · P]"""
    seen: I32
    found: I32


def other_tables(fabric: Fabric, egress: U8) -> U8 | None:
    """uint8[O, T + S, S]: `egress` with other shortest paths to hosts where needed; None where no
    shortest paths will do, or none were found."""
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    alive = fabric.switch_up
    up = fabric.channel_up & alive[fabric.channel_source] & alive[fabric.channel_target]
    channel = np.where(up[fabric.channel_by_port], fabric.channel_by_port, -1)[:, :ports]
    pairs = fabric.channels * ports
    graph = _Pairs(
        np.ascontiguousarray(channel, np.int32),
        fabric.channel_source,
        fabric.channel_target,
        fabric.channel_port,
        fabric.channel_offset,
        fabric.channel_reverse,
        np.zeros((pairs, (ports + 63) // 64), np.uint64),
        np.arange(pairs, dtype=np.int32),
        np.full(pairs, -1, np.int32),
        np.empty(pairs, np.int32),
    )
    stamp = np.zeros(1, np.int64)
    found = egress.copy()
    hosts = np.concatenate([fabric.is_host_port, np.zeros(fabric.switches, np.bool_)])
    others = np.concatenate([fabric.terminal_up & ~fabric.is_host_port, alive])
    for wanted, forced in ((hosts, True), (hosts, False), (others, False)):
        must = wanted is hosts
        for table in found:
            if not _choose(graph, table, fabric.destination_switch, wanted, forced, must, stamp):
                return None
        if forced and not _begin_order(graph):
            return None
    return found


def _begin_order(graph: _Pairs) -> bool:
    """Orders pairs by what was put in; False where that closes a cycle. A pair that nothing was put
    in for stands with the last of its first channel, so that little is to be moved later."""
    ports = graph.channel.shape[1]
    begins = np.zeros((len(graph.source), graph.follows.shape[1]), np.uint64)
    level = pair_levels(graph.channel, graph.target, Triples(begins, graph.follows))
    if (level == CYCLE).any():
        return False
    by_channel = level.reshape(-1, ports)
    guess = np.where(by_channel < 0, by_channel.max(axis=1, keepdims=True), by_channel).ravel()
    graph.place[np.argsort(guess, kind="stable")] = np.arange(len(level), dtype=np.int32)
    return True


@njit(cache=True)
def _choose(
    graph: _Pairs, table: U8, root: I32, wanted: Bool, forced: bool, must: bool, stamp: I64
) -> bool:  # pragma: no cover
    """Puts in the paths of which there is one only (`forced`), or chooses among the others. False
    where that closes a cycle and `must` not; where it may, the entry stays."""
    destinations, switches = table.shape
    near, ways = np.empty(switches, np.int32), np.empty(switches, np.int32)
    order = np.empty(switches, np.uint32)
    only = np.zeros(switches, np.uint8)
    before, count = -1, 0
    for d in range(destinations):
        if not wanted[d]:
            continue
        r = root[d]
        if r == before and forced:
            continue  # the same paths
        if r != before:
            count = _shortest(graph, r, near, ways, only, order)
            before = r
        row = table[d]
        for i in range(1, count):
            v = np.uint32(order[np.uint32(i)])
            if forced:
                _forced(graph, only, ways, v)
            elif ways[v] == 1:
                row[v] = only[v]
                if not _fits(graph, row, near, v, np.uint32(only[v]), stamp) and must:
                    return False
            elif not _pick(graph, row, near, v, stamp) and must:
                return False
    return True


@njit(cache=True)
def _shortest(
    graph: _Pairs, root: int, near: I32, ways: I32, only: U8, order: U32
) -> int:  # pragma: no cover
    """Hops to `root`, how many channels lead closer, one of their ports; how many switches reach
    it, which stand in `order`."""
    near[:], ways[:] = -1, 0
    near[root], order[0], count, i = 0, root, 1, 0
    while i < count:
        w = np.uint32(order[np.uint32(i)])
        i += 1
        for c in range(graph.offset[w], graph.offset[w + np.uint32(1)]):
            back = np.uint32(graph.reverse[np.uint32(c)])
            v = np.uint32(graph.source[back])
            if graph.channel[v, np.uint32(graph.port[back])] < 0:
                continue
            if near[v] < 0:
                near[v] = near[w] + 1
                order[np.uint32(count)] = v
                count += 1
            if near[v] == near[w] + 1:
                ways[v] += 1
                only[v] = graph.port[back]
    return count


@njit(cache=True)
def _forced(graph: _Pairs, only: U8, ways: I32, v: np.uint32) -> None:  # pragma: no cover
    """Puts in v's first three channels where there is one way only, cycle or not."""
    s = v
    for _ in range(3):
        if ways[s] != 1:
            return
        s = np.uint32(graph.target[np.uint32(graph.channel[s, np.uint32(only[s])])])
    c = np.uint32(graph.channel[v, np.uint32(only[v])])
    w = np.uint32(graph.target[c])
    q = np.uint32(only[w])
    then = np.uint32(only[np.uint32(graph.target[np.uint32(graph.channel[w, q])])])
    pair = c * np.uint32(graph.channel.shape[1]) + q
    graph.follows[pair, then >> np.uint32(6)] |= np.uint64(1) << np.uint64(then & np.uint32(63))


@njit(cache=True)
def _pick(graph: _Pairs, row: U8, near: I32, v: np.uint32, stamp: I64) -> bool:  # pragma: no cover
    """Chooses v's port: what asks for nothing new, the engine's first; else what closes none."""
    s = np.uint32(v)
    own = row[s]
    for new in range(2):
        for turn in range(graph.channel.shape[1] + 1):
            q = np.uint32(own) if turn == 0 else np.uint32(turn - 1)
            if q >= graph.channel.shape[1] or graph.channel[s, q] < 0:
                continue
            w = np.uint32(graph.target[np.uint32(graph.channel[s, q])])
            if near[w] != near[s] - 1:
                continue
            if _is_in(graph, row, near, s, q) or (new and _fits(graph, row, near, s, q, stamp)):
                row[s] = q
                return True
    return False


@njit(cache=True)
def _is_in(
    graph: _Pairs, row: U8, near: I32, v: np.uint32, q: np.uint32
) -> bool:  # pragma: no cover
    """Whether the three channels that begin at v's port q were put in, or are fewer."""
    if near[v] < 3:
        return True
    c = np.uint32(graph.channel[np.uint32(v), np.uint32(q)])
    w = np.uint32(graph.target[c])
    x = np.uint32(graph.target[np.uint32(graph.channel[w, np.uint32(row[w])])])
    pair, then = c * np.uint32(graph.channel.shape[1]) + np.uint32(row[w]), np.uint32(row[x])
    word = graph.follows[pair, then >> np.uint32(6)]
    return bool(word >> np.uint64(then & np.uint32(63)) & np.uint64(1))


@njit(cache=True)
def _fits(
    graph: _Pairs, row: U8, near: I32, v: np.uint32, q: np.uint32, stamp: I64
) -> bool:  # pragma: no cover
    """Puts them in, unless that closes a cycle."""
    if _is_in(graph, row, near, v, q):
        return True
    ports = np.uint32(graph.channel.shape[1])
    c = np.uint32(graph.channel[np.uint32(v), np.uint32(q)])
    w = np.uint32(graph.target[c])
    next_port = np.uint32(row[w])
    c1 = np.uint32(graph.channel[w, next_port])
    then = np.uint32(row[np.uint32(graph.target[c1])])
    pair = c * ports + next_port
    stamp[0] += 2
    if not _join(graph, pair, c1 * ports + then, stamp[0]):
        return False
    graph.follows[pair, then >> np.uint32(6)] |= np.uint64(1) << np.uint64(then & np.uint32(63))
    return True


@njit(cache=True)
def _join(graph: _Pairs, x: np.uint32, y: np.uint32, stamp: int) -> bool:  # pragma: no cover
    """Whether pair y may follow pair x: the order is then mended where needed."""
    place, seen, found = graph.place, graph.seen, graph.found
    low, high = place[y], place[x]
    if high < low:
        return True
    ports = np.uint32(graph.channel.shape[1])
    found[0] = y
    seen[y] = stamp
    ahead, i = 1, 0
    while i < ahead:
        pair = np.uint32(found[np.uint32(i)])
        i += 1
        c, q = np.uint32(pair // ports), np.uint32(pair % ports)
        after = np.uint32(graph.channel[np.uint32(graph.target[c]), q]) * ports
        for word in range(graph.follows.shape[1]):
            bits = graph.follows[pair, np.uint32(word)]
            then = np.uint32(64 * word)
            while bits:
                if bits & np.uint64(1):
                    node = after + then
                    if node == x:
                        return False
                    if place[node] < high and seen[node] != stamp:
                        seen[node] = stamp
                        found[np.uint32(ahead)] = node
                        ahead += 1
                bits >>= np.uint64(1)
                then += np.uint32(1)
        if ahead > PATIENCE:
            return False
    total, i = ahead + 1, ahead
    found[np.uint32(ahead)] = x
    seen[x] = stamp + 1
    while i < total:
        pair = np.uint32(found[np.uint32(i)])
        i += 1
        c, q = np.uint32(pair // ports), np.uint32(pair % ports)
        s, port = np.uint32(graph.source[c]), np.uint32(graph.port[c])
        for out in range(graph.offset[s], graph.offset[s + np.uint32(1)]):
            node = np.uint32(graph.reverse[np.uint32(out)]) * ports + port
            word_of = graph.follows[node, q >> np.uint32(6)]
            if not word_of >> np.uint64(q & np.uint32(63)) & np.uint64(1):
                continue
            if place[node] > low and seen[node] != stamp + 1:
                seen[node] = stamp + 1
                found[np.uint32(total)] = node
                total += 1
        if total > ahead + PATIENCE:
            return False
    mend_order(place, found, ahead, total)
    return True
