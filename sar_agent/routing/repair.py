"""Repairs tables after the fabric changed, so that every destination is reachable again.

Entries are compared with the new hop counts. An entry that still leads one hop closer over a live
cable stays, whatever other entries do; the others move to the remaining channels, spread like
routes that no job uses (`unused_routes.py`). Links or switches that are gone, back or new, and
hosts that moved, are all the same question, so there is no list of cases to get wrong. Where a
switch's hops to a root did not change, only entries over cables that died are examined. O(D S) at
the worst.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.hop_counts import FAR
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.unused_routes import LevelTurns
from sar_agent.util.kernels import kernel, kernel_part

BLOCK = 128
"""Hops that are compared at once."""


def same_indices(before: Fabric, after: Fabric) -> bool:
    """Whether switches and terminals have the same indices in both."""
    return np.array_equal(before.switch_guid, after.switch_guid) and np.array_equal(
        before.terminal_guid, after.terminal_guid
    )


def carry_over(before: Fabric, after: Fabric, egress: U8) -> U8:
    """uint8[T + S, S]: the tables of one fabric on the indices of another, by GUID; destinations
    and switches that are new have no route. The array itself where the indices are the same."""
    if same_indices(before, after):
        return egress
    moved = np.full((after.destinations, after.switches), NO_ROUTE, np.uint8)
    old = np.concatenate([before.terminal_guid, before.switch_guid])
    new = np.concatenate([after.terminal_guid, after.switch_guid])
    _, old_d, new_d = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    _, old_s, new_s = np.intersect1d(
        before.switch_guid, after.switch_guid, assume_unique=True, return_indices=True
    )
    moved[np.ix_(new_d, new_s)] = egress[np.ix_(old_d, old_s)]
    return moved


def neighbours_of(fabric: Fabric) -> U32:
    """uint32[S, ports]: the switch at the other end of each live cable; the switch itself where
    there is none, so that it leads no hop closer."""
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    table = np.repeat(np.arange(fabric.switches, dtype=np.uint32)[:, None], ports, axis=1)
    up = fabric.channel_up
    table[fabric.channel_source[up], fabric.channel_port[up]] = fabric.channel_target[up]
    return table


class SuspectEntries(NamedTuple):
    """The entries that may be wrong now: for each root, some switches."""

    offset: U32
    """uint32[S + 1] into `switch`, by root."""
    switch: U32


def all_entries(switches: int) -> SuspectEntries:
    """All entries of all roots."""
    offset = np.arange(switches + 1, dtype=np.uint32) * np.uint32(switches)
    return SuspectEntries(offset, np.tile(np.arange(switches, dtype=np.uint32), switches))


@kernel
def entries_near_changed_hops(
    graph: Graph, before: U8, after: U8, dead: U32
) -> SuspectEntries:  # pragma: no cover
    """`before`, `after` uint8[S, S] are hops, `dead` the switches at ends of cables that died or
    moved.

    An entry leads from v to w, one hop closer; it can be wrong only if the hops of v or w changed.
    """
    switches = np.uint32(len(before))
    offset = np.zeros(switches + np.uint32(1), np.uint32)
    marked = np.full(switches, switches, np.uint32)  # the last root for which a switch was added
    switch = np.empty(0, np.uint32)
    size = np.uint32(0)
    for root in range(switches):
        if len(switch) < size + switches:
            longer = np.empty(2 * len(switch) + 16 * len(before), np.uint32)
            for k in range(size):
                longer[k] = switch[k]
            switch = longer
        for v in dead:
            size = _add_once(marked, switch, size, root, v)
        old, new = before[root], after[root]
        for begin in range(np.uint32(0), switches, np.uint32(BLOCK)):
            end = min(begin + np.uint32(BLOCK), switches)
            differs = np.uint8(0)
            for v in range(begin, end):  # in vectors; most blocks are equal
                differs |= old[v] ^ new[v]
            if not differs:
                continue
            for v in range(begin, end):
                if old[v] == new[v]:
                    continue
                size = _add_once(marked, switch, size, root, v)
                for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
                    size = _add_once(marked, switch, size, root, graph.target[c])
        offset[root + np.uint32(1)] = size
    return SuspectEntries(offset, switch[:size])


@kernel_part
def _add_once(
    marked: U32, switch: U32, size: np.uint32, root: int, v: int
) -> np.uint32:  # pragma: no cover
    """Adds v to the switches of this root, if it is not among them; returns the number of all."""
    if marked[v] == root:
        return size
    marked[v] = root
    switch[size] = v
    return np.uint32(size + np.uint32(1))


@kernel
def repair_rows(
    graph: Graph,
    hops: U8,
    neighbours: U32,
    turns: LevelTurns,
    root_of: U32,
    last_port: U8,
    suspects: SuspectEntries,
    wanted: Bool,
    whole: Bool,
    egress: U8,
) -> None:  # pragma: no cover
    """Repairs the rows `wanted` bool[D] of `egress` uint8[D, S] in place.

    `whole` bool[D]: destinations that are new or at another switch now, of which all entries are
    examined.
    """
    destinations, switches = egress.shape
    terminals = len(turns.terminal)
    ports = neighbours.shape[1]
    for d in range(destinations):
        if not wanted[d]:
            continue
        root = root_of[d]
        hop, tree = hops[root], egress[d]
        first, last = suspects.offset[root], suspects.offset[root + 1]
        for k in range(first, first + np.uint32(switches) if whole[d] else last):
            v = np.uint32(k - first) if whole[d] else suspects.switch[k]
            port = tree[v]
            if v == root:
                right = last_port[d]
            elif port < ports and hop[neighbours[v, port]] + 1 == hop[v]:
                continue
            elif hop[v] == FAR:
                right = np.uint8(NO_ROUTE)
            else:
                turn = np.int64(0)  # switches' own LIDs: the lowest port, as good as any
                if d < terminals:
                    turn = np.int64(turns.terminal[d])
                    if turns.level[v] > 0:
                        turn = np.int64(turns.leaf[root] // turns.stride[turns.level[v]])
                right = _closer(graph, hop, v, turn)
            if port != right:
                tree[v] = right


@kernel
def keep_in_dag(
    graph: Graph,
    cache: DagCache,
    turns: LevelTurns,
    root_of: U32,
    rows: U32,
    sends: Bool,
    egress: U8,
) -> int:  # pragma: no cover
    """Changes the entries of `rows` (destinations, those of one switch together) on paths from the
    switches `sends` bool[S] that lead along channels which the cache does not keep; returns how
    many these are."""
    changed = 0
    passed = np.empty(egress.shape[1], np.bool_)
    for d in rows:
        row = dag_row(graph, cache, root_of[d])
        order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
        tree = egress[d]
        passed[:] = sends
        for back in range(cache.size[row] - 1):
            i = cache.size[row] - np.uint32(1) - np.uint32(back)
            v = order[i]
            if not passed[v]:
                continue
            turn = turns.terminal[d]
            if turns.level[v] > 0:
                turn = turns.leaf[root_of[d]] // turns.stride[turns.level[v]]
            via = edge[start[i] + turn % (start[i + np.uint32(1)] - start[i])]
            kept = False
            for e in range(start[i], start[i + np.uint32(1)]):
                if graph.port[edge[e]] == tree[v]:
                    via = edge[e]
                    kept = True
            if not kept:
                tree[v] = graph.port[via]
                changed += 1
            passed[graph.target[via]] = True
    return changed


@kernel_part
def _closer(graph: Graph, hop: U8, v: np.uint32, turn: np.int64) -> np.uint8:  # pragma: no cover
    """The port of channel `turn`, modulo their number, among those that lead one hop closer."""
    count = 0
    for c in range(graph.offset[v], graph.offset[v + 1]):
        count += graph.up[c] and hop[graph.target[c]] + 1 == hop[v]
    turn %= count
    for c in range(graph.offset[v], graph.offset[v + 1]):
        if graph.up[c] and hop[graph.target[c]] + 1 == hop[v]:
            if turn == 0:
                return np.uint8(graph.port[c])
            turn -= 1
    return np.uint8(NO_ROUTE)
