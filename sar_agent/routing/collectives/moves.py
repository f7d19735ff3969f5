"""A move: all items of one destination that pass a switch take another way from there.

A move from an item's leaf switch takes that item alone along, one from a switch above all items
behind it. Entries that others use stay, the first one apart; the rest of the way is free, so a move
mostly changes one entry. Entries that nobody uses any more become those of the template. Moves are
logged, so that a sequence of them can be undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F64, I32, I64, U8
from sar_agent.routing.collectives.phase_demand import PhaseDemand
from sar_agent.routing.collectives.sums import ADD, FULL, REMOVE, Sums, carry_item
from sar_agent.routing.collectives.ways import Ways
from sar_agent.routing.tree_moves import Number
from sar_agent.util.kernels import kernel_part

OTHER_ABOVE = 0.5
"""How often an entry above leaf switches that is free is drawn; else it is the template's. Most
ways then differ from the template in one entry."""
ITEMS, ENTRIES, OFF, MARK = 0, 1, 2, 3


class Log(NamedTuple):
    """What a sequence of moves changed, and scratch."""

    item: I32
    """int32[·]: items in the order in which they moved, …"""
    was: I32
    """int32[·, hops]: … and where they were."""
    entry: I64
    """int64[·, 3]: destination, switch and the port before."""
    size: I64
    """int64[4]: how many items and entries, how many more entries differ from the template, and the
    last mark in `used`."""
    used: I64
    """int64[S]: the mark of a switch whose entry others use."""
    row: I32
    """int32[hops]: a way that was drawn, …"""
    best: I32
    """… and the best one."""
    leave: F64
    """float64[hops], scratch: what it gains to leave each channel."""
    moved: I64
    """int64[I]: the number of the sequence in which an item moved last."""


class Tables(NamedTuple):
    """What moves change."""

    demand: PhaseDemand
    ways: Ways
    sums: Sums
    path: I32
    """int32[I, hops]"""
    egress: U8
    """uint8[T + S, S]"""
    template: U8
    log: Log


def new_log(demand: PhaseDemand, switches: Number, hops: Number, depth: Number) -> Log:
    """Room for sequences of `depth` moves, of which the first takes any number of items along."""
    most = int(np.diff(demand.to).max(initial=0)) + depth + 1
    return Log(
        item=np.zeros(most, np.int32),
        was=np.zeros((most, hops), np.int32),
        entry=np.zeros((2 * (depth + 1) * (hops + 1), 3), np.int64),
        size=np.zeros(4, np.int64),
        used=np.zeros(switches, np.int64),
        row=np.full(hops, -1, np.int32),
        best=np.full(hops, -1, np.int32),
        leave=np.zeros(hops),
        moved=np.full(len(demand.leaf), -1, np.int64),
    )


@kernel_part
def below(state: I64, most: Number) -> Number:  # pragma: no cover
    """A random number from 0 to most - 1 (xorshift)."""
    x = np.uint64(state[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = np.int64(x)
    return np.int64((x >> np.uint64(11)) % np.uint64(most))


@kernel_part
def chance(state: I64) -> float:  # pragma: no cover
    """A random number in [0, 1)."""
    return below(state, 1 << 30) / (1 << 30)


@kernel_part
def passes_at(ways: Ways, row: I32, s: Number) -> Number:  # pragma: no cover
    """The hop at which a path leaves switch `s`; -1: it does not pass it."""
    for h in range(len(row)):
        if row[h] < 0:
            break
        if ways.source[row[h]] == s:
            return h
    return -1


@kernel_part
def mark_used(tables: Tables, d: Number, s: Number) -> None:  # pragma: no cover
    """Before ways from `s` to `d` are drawn: marks switches that items to `d` pass which do not
    pass `s`. Entries there stay."""
    demand, path, ways, log = tables.demand, tables.path, tables.ways, tables.log
    log.size[MARK] += 1
    for k in range(demand.to[d], demand.to[d + 1]):
        row = path[demand.to_item[k]]
        if passes_at(ways, row, s) < 0:
            for c in row:
                if c < 0:
                    break
                log.used[ways.source[c]] = log.size[MARK]


@kernel_part
def draw_way(
    tables: Tables, d: Number, s: Number, port: Number, state: I64
) -> bool:  # pragma: no cover
    """After `mark_used`, draws in `log.row` a way from `s` to `d`, by this port where it leads
    closer (-1: by any); False where there is none."""
    ways, log, egress = tables.ways, tables.log, tables.egress
    row = log.row
    root = ways.root[d]
    x, v, h = ways.row[root], s, 0
    while v != root:
        place = ways.place[x, v]
        if h == len(row) or place < 0:
            return False
        first = np.int64(ways.start[x, place])
        number = np.int64(ways.start[x, place + 1]) - first
        c = np.int64(ways.by_port[v, egress[d, v]])
        if number > 1 and (h == 0 or log.used[v] != log.size[MARK]):
            if h == 0 or chance(state) < OTHER_ABOVE:
                c = np.int64(ways.edge[x, first + below(state, number)])
            else:
                c = np.int64(ways.by_port[v, tables.template[d, v]])
        if h == 0 and port >= 0:
            for e in range(first, first + number):
                if ways.port[ways.edge[x, e]] == port:
                    c = np.int64(ways.edge[x, e])
        if c >= len(ways.target):
            return False
        row[h] = c
        h += 1
        v = np.int64(ways.target[c])
    for k in range(h, len(row)):
        row[k] = -1
    return True


@kernel_part
def set_entry(tables: Tables, d: Number, s: Number, port: Number) -> None:  # pragma: no cover
    """Writes and logs an entry."""
    log, egress, template = tables.log, tables.egress, tables.template
    if egress[d, s] == port:
        return
    n = log.size[ENTRIES]
    log.entry[n, 0], log.entry[n, 1], log.entry[n, 2] = d, s, egress[d, s]
    log.size[ENTRIES] = n + 1
    log.size[OFF] += int(port != template[d, s]) - int(egress[d, s] != template[d, s])
    egress[d, s] = port


@kernel_part
def move_items(
    tables: Tables, d: Number, s: Number, row: I32, number: Number
) -> bool:  # pragma: no cover
    """Moves the items to `d` that pass `s` onto `row`, as part of the sequence `number`; False
    where no room was left for it, and it must be undone."""
    demand, ways, log = tables.demand, tables.ways, tables.log
    for h in range(len(row)):
        if row[h] < 0:
            break
        set_entry(tables, d, np.int64(ways.source[row[h]]), np.int64(ways.port[row[h]]))
    n = log.size[ITEMS]
    first = n
    for k in range(demand.to[d], demand.to[d + 1]):
        o = np.int64(demand.to_item[k])
        at = passes_at(ways, tables.path[o], s)
        if at < 0:
            continue
        if n == len(log.item):
            return False
        log.item[n] = o
        for h in range(len(row)):
            log.was[n, h] = tables.path[o, h]
        n += 1
        log.size[ITEMS] = n
        log.moved[o] = number
        carry_item(demand, tables.sums, o, tables.path[o], REMOVE)
        for h in range(at, len(row)):
            tables.path[o, h] = row[h - at]
        carry_item(demand, tables.sums, o, tables.path[o], ADD)
        if tables.sums.state[FULL] > 0:
            return False
    if first < n:
        _vacate(tables, d, s, log.was[first])
    return True


@kernel_part
def _vacate(tables: Tables, d: Number, s: Number, was: I32) -> None:  # pragma: no cover
    """Switches behind `s` that no item to `d` passes any more have the template's entry."""
    ways, demand = tables.ways, tables.demand
    for h in range(passes_at(ways, was, s) + 1, len(was)):
        if was[h] < 0:
            break
        v = np.int64(ways.source[was[h]])
        if tables.egress[d, v] == tables.template[d, v]:
            continue
        used = False
        for k in range(demand.to[d], demand.to[d + 1]):
            if passes_at(ways, tables.path[demand.to_item[k]], v) >= 0:
                used = True
        if not used:
            set_entry(tables, d, v, np.int64(tables.template[d, v]))


@kernel_part
def begin(log: Log) -> None:  # pragma: no cover
    """A sequence of moves begins."""
    log.size[: OFF + 1] = 0


@kernel_part
def undo(tables: Tables) -> None:  # pragma: no cover
    """Undoes the sequence."""
    log, sums = tables.log, tables.sums
    for n in range(log.size[ITEMS] - 1, -1, -1):
        o = np.int64(log.item[n])
        carry_item(tables.demand, sums, o, tables.path[o], REMOVE)
        for h in range(len(log.was[n])):
            tables.path[o, h] = log.was[n, h]
        carry_item(tables.demand, sums, o, tables.path[o], ADD)
    for n in range(log.size[ENTRIES] - 1, -1, -1):
        tables.egress[log.entry[n, 0], log.entry[n, 1]] = log.entry[n, 2]
    sums.state[FULL] = 0.0
    log.size[: OFF + 1] = 0


@kernel_part
def crowd(
    tables: Tables, row: I32, i: Number, weight: F64, clash: float
) -> float:  # pragma: no cover
    """How much there is on the channels of a way for item `i`, and `clash` for each that rings
    have filled."""
    sums, total = tables.sums, 0.0
    for h in range(len(row)):
        c = row[h]
        if c < 0:
            break
        for p in range(len(weight)):
            load = sums.total[p, c] * sums.narrow[c]
            total += load * load * weight[p]
        if tables.demand.ring[i] and sums.rings[c] >= sums.limit[c]:
            here = False
            for other in tables.path[i]:
                here |= other == c
            if not here:
                total += clash
    return total
