"""Search for tables that serve all collectives, by moves that make no ring worse.

A try takes a slow phase, one of its messages on a full channel, and moves it, or an entry above
leaf switches with all behind it, to the emptiest of a few ways. Messages of rings that are then one
too many on a channel are ejected onto ways that rings leave free, and these may eject others, at
most `DEPTH` in a row (ejection chains: F. Glover, 1996). Compared are, in this order: messages of
rings above their limits; load above the ceiling; the cost, with a price for each exception. None of
the first two may grow. A move that costs more is taken now and then, less and less often (simulated
annealing). Without phases to choose from the search serves rings alone (min-conflicts): it begins
at channels with too many of them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I32, I64, Bool
from sar_agent.routing.collectives.moves import (
    ITEMS,
    OFF,
    Tables,
    begin,
    below,
    chance,
    crowd,
    draw_way,
    mark_used,
    move_items,
    passes_at,
    undo,
)
from sar_agent.routing.collectives.sums import COST, HOT, OVER, change_of
from sar_agent.routing.tree_moves import Number
from sar_agent.util.kernels import kernel, kernel_part

DEPTH = 8
ABOVE = 0.3
"""The share of tries that move an entry above leaf switches, where there are any."""
FEW = 6
"""How many phases, messages or ways a try looks at."""
RARELY = 4.0
"""Where rings alone are searched, a state with one more above the limits is kept once in e^4
times."""
CLASH, EJECTED = 3.0, 30.0
"""What a channel that rings have filled counts in the choice of a way, in squares of load: for the
first item of a sequence, and for one that is ejected."""
EPSILON = 1e-9
DRAWN = 8
"""How many ways are drawn for an item."""
SLACK = 3.0
"""A move that costs more than this many times the temperature is not tried."""


@kernel
def search(
    tables: Tables,
    phases: I32,
    first: I64,
    weight: F64,
    free: Bool,
    tries: Number,
    price: float,
    warmth: float,
    seed: Number,
) -> Number:  # pragma: no cover
    """Makes up to `tries` moves; how many were kept. `phases` int32[·] may be chosen, those of
    collective p are `first[p]:first[p + 1]`; `weight` float64[P] is how often a collective is;
    `free` bool[I] are the items that may move. `price` is that of an exception, `warmth` the
    temperature at first."""
    sums, log = tables.sums, tables.log
    rings = np.flatnonzero(tables.demand.ring).astype(np.int64)
    state = np.array([seed * 2654435761 + 88172645463325252], np.int64)
    alone, kept = len(phases) == 0, 0
    for number in range(tries):
        if alone and sums.state[OVER] == 0:
            break
        if alone or (sums.state[OVER] > 0 and below(state, 2) == 0):
            i = _crowded_ring(tables, rings, state)
        else:
            i = _slow_item(tables, phases, first, weight, state)
        if i < 0 or not free[i]:
            continue
        begin(log)
        cost, over, hot = sums.state[COST], sums.state[OVER], sums.state[HOT]
        good = _first_move(
            tables, i, weight, free, number, price, warmth * (1.0 - number / tries), alone, state
        )
        port = tables.log.entry[0, 2] if good else -1
        ejected = 0
        while good and ejected < DEPTH and sums.state[OVER] > over:
            o = _in_the_way(tables, free, number)
            if o < 0:
                break
            good = _eject(tables, o, weight, port if ejected == 0 else -1, number, state)
            ejected += 1
        if good:
            worse = sums.state[COST] - cost + price * log.size[OFF]
            if sums.state[OVER] != over:
                good = sums.state[OVER] < over or (
                    alone
                    and number < 0.9 * tries
                    and chance(state) < np.exp(RARELY * (over - sums.state[OVER]))
                )
            elif not alone and abs(sums.state[HOT] - hot) > EPSILON:
                good = sums.state[HOT] < hot
            elif not alone and worse > 0:
                now = warmth * (1.0 - number / tries)
                good = now > 0 and chance(state) < np.exp(-worse / now)
        if good:
            kept += 1
        else:
            undo(tables)
            sums.state[COST], sums.state[HOT] = cost, hot
    return kept


@kernel_part
def _slow_item(
    tables: Tables, phases: I32, first: I64, weight: F64, state: I64
) -> Number:  # pragma: no cover
    """Of some messages of a slow phase that on the fullest channel; -1: none was found."""
    demand, sums = tables.demand, tables.sums
    whole = weight.sum()
    for _ in range(FEW):
        at, p = chance(state) * whole, 0
        while p < len(weight) - 1 and at >= weight[p]:
            at -= weight[p]
            p += 1
        if first[p] == first[p + 1]:
            continue
        g = phases[first[p] + below(state, first[p + 1] - first[p])]
        if sums.norm[g] < 1e-6:
            continue
        best, most = np.int64(-1), -1.0
        for _k in range(FEW):
            some = below(state, demand.sent[g + 1] - demand.sent[g])
            i = np.int64(demand.sent_item[demand.sent[g] + some])
            load = 0.0
            for c in tables.path[i]:
                if c < 0:
                    break
                load = max(load, sums.total[p, c] * sums.narrow[c])
            if load > most:
                best, most = i, load
        return best
    return -1


@kernel_part
def _crowded_ring(tables: Tables, rings: I64, state: I64) -> Number:  # pragma: no cover
    """A message on a channel with too many of rings; -1: there is none."""
    sums, count = tables.sums, len(rings)
    first = below(state, count)
    for k in range(count):
        i = rings[(first + k) % count]
        for c in tables.path[i]:
            if c < 0:
                break
            if sums.rings[c] > sums.limit[c]:
                return np.int64(i)
    return -1


@kernel_part
def _first_move(
    tables: Tables,
    i: Number,
    weight: F64,
    free: Bool,
    number: Number,
    price: float,
    warmth: float,
    alone: bool,
    state: I64,
) -> bool:  # pragma: no cover
    """Moves the item, or an entry on its way; False: nothing to do, or it must be undone."""
    demand, ways, log, sums = tables.demand, tables.ways, tables.log, tables.sums
    d, s = np.int64(demand.destination[i]), np.int64(demand.leaf[i])
    hops = 0
    while hops < tables.path.shape[1] and tables.path[i, hops] >= 0:
        hops += 1
    if hops < 2:
        return False
    if chance(state) < ABOVE:
        s = np.int64(ways.source[tables.path[i, below(state, hops)]])
    at = passes_at(ways, tables.path[i], s)
    if at > 0 and not _all_free(tables, free, d, s):
        return False
    leave = log.leave
    for h in range(at, hops):
        leave[h] = 0.0 if alone else change_of(demand, sums, i, tables.path[i, h], -1.0)
    mark_used(tables, d, s)
    least = np.inf
    for _ in range(DRAWN):
        if not draw_way(tables, d, s, -1, state):
            continue
        load = 0.0
        same = True
        for h in range(at, hops):
            c = np.int64(log.row[h - at])
            if c == tables.path[i, h]:
                continue
            same = False
            load += leave[h]
            if not alone:
                load += change_of(demand, sums, i, c, 1.0)
            if demand.ring[i] and sums.rings[c] >= sums.limit[c]:
                load += 1.0 if alone else CLASH * price
            v = np.int64(ways.source[c])
            load += price * (
                int(ways.port[c] != tables.template[d, v])
                - int(tables.egress[d, v] != tables.template[d, v])
            )
        if same:
            continue
        if alone:
            load += chance(state)
        if load < least:
            least = load
            for h in range(len(log.row)):
                log.best[h] = log.row[h]
    if not alone and at == 0 and least > SLACK * warmth and sums.state[OVER] == 0:
        return False
    if least == np.inf:
        return False
    return move_items(tables, d, s, log.best, number)


@kernel_part
def _all_free(tables: Tables, free: Bool, d: Number, s: Number) -> bool:  # pragma: no cover
    """Whether all items to `d` that pass `s` may move."""
    demand = tables.demand
    for k in range(demand.to[d], demand.to[d + 1]):
        o = demand.to_item[k]
        if not free[o] and passes_at(tables.ways, tables.path[o], s) >= 0:
            return False
    return True


@kernel_part
def _in_the_way(tables: Tables, free: Bool, number: Number) -> Number:  # pragma: no cover
    """A message of a ring that did not move yet, on a channel that those that moved filled."""
    sums, log = tables.sums, tables.log
    for n in range(log.size[ITEMS]):
        o = np.int64(log.item[n])
        if not tables.demand.ring[o]:
            continue
        for c in tables.path[o]:
            if c < 0:
                break
            if sums.rings[c] > sums.limit[c]:
                for k in range(min(sums.rings[c], sums.ring.shape[1])):
                    other = np.int64(sums.ring[c, k])
                    if log.moved[other] != number and free[other]:
                        return other
    return -1


@kernel_part
def _eject(
    tables: Tables, o: Number, weight: F64, port: Number, number: Number, state: I64
) -> bool:  # pragma: no cover
    """Moves a message of a ring to a way that rings leave free; by `port` if that is one."""
    demand, ways, log = tables.demand, tables.ways, tables.log
    d, s = np.int64(demand.destination[o]), np.int64(demand.leaf[o])
    place = ways.place[ways.row[ways.root[d]], s]
    x = ways.row[ways.root[d]]
    number_of_ways = np.int64(ways.start[x, place + 1]) - np.int64(ways.start[x, place])
    mark_used(tables, d, s)
    least = np.inf
    for t in range(3 * number_of_ways):
        if not draw_way(tables, d, s, port if t == 0 else -1, state):
            continue
        same = True
        for h in range(len(log.row)):
            same &= log.row[h] == tables.path[o, h]
        if same:
            continue
        load = crowd(tables, log.row, o, weight, 0.0) * (0.5 + chance(state))
        load += crowd(tables, log.row, o, 0.0 * weight, EJECTED)
        if load < least:
            least = load
            for h in range(len(log.row)):
                log.best[h] = log.row[h]
    return least < np.inf and move_items(tables, d, s, log.best, number)


@kernel
def give_back(tables: Tables, free: Bool, price: float) -> Number:  # pragma: no cover
    """Entries over which none but `free` items are sent become those of the template where that
    costs no more than an exception does; how many."""
    demand, ways, sums, log = tables.demand, tables.ways, tables.sums, tables.log
    back = 0
    for i in range(len(demand.leaf)):
        if not free[i]:
            continue
        d = np.int64(demand.destination[i])
        for h in range(tables.path.shape[1]):
            if tables.path[i, h] < 0:
                break
            s = np.int64(ways.source[tables.path[i, h]])
            if tables.egress[d, s] == tables.template[d, s] or not _all_free(tables, free, d, s):
                continue
            begin(log)
            cost, over, hot = sums.state[COST], sums.state[OVER], sums.state[HOT]
            good = _usual_way(tables, d, s) and move_items(tables, d, s, log.best, -2 - i)
            good = good and sums.state[OVER] <= over and sums.state[HOT] <= hot + EPSILON
            if good and sums.state[COST] - cost + price * log.size[OFF] <= EPSILON**2:
                back += 1
            else:
                undo(tables)
                sums.state[COST], sums.state[HOT] = cost, hot
    return back


@kernel_part
def _usual_way(tables: Tables, d: Number, s: Number) -> bool:  # pragma: no cover
    """Sets in `log.best` the way from `s` to `d` by the template's port, then by the tables."""
    ways, best = tables.ways, tables.log.best
    v, h, port = s, 0, np.int64(tables.template[d, s])
    while v != ways.root[d]:
        c = ways.by_port[v, port]
        if c >= len(ways.target) or h == len(best):
            return False
        best[h] = c
        h += 1
        v = np.int64(ways.target[c])
        port = np.int64(tables.egress[d, v])
    for k in range(h, len(best)):
        best[k] = -1
    return True
