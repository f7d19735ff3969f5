"""What phases meet on channels, kept up to date while items move.

For each collective and channel there is a list of the phases that use it, mostly short. A phase
costs the 4-norm of what its channels carry above 1, which is close to its contention - 1 and, other
than that, falls with each channel that is relieved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F64, I32, I64
from sar_agent.routing.collectives.phase_demand import PhaseDemand
from sar_agent.routing.tree_moves import Number
from sar_agent.util.kernels import kernel, kernel_part

SOFT = 1e-6
"""Added below the fourth root, whose slope at 0 is infinite."""
SLOTS = 8
"""Messages of rings on a channel beyond the most there are at first."""
COST, OVER, HOT, FULL = 0, 1, 2, 3
ADD, REMOVE = np.int64(1), np.int64(-1)


class Sums(NamedTuple):
    """P collectives, C channels, G phases, J jobs."""

    room: I64
    """int64[P · C + 1]: where the list of a collective and channel begins in `phase`, `amount`."""
    used: I32
    """int32[P · C]: its length."""
    phase: I32
    amount: F64
    """How much a phase sends over the channel."""
    total: F64
    """float64[P, C]: the sum over jobs of the means over their phases."""
    norm: F64
    """float64[G]: the sum of the 4th powers of what is above 1."""
    price: F64
    """float64[G]: what the norm of a phase costs."""
    own: F64
    """float64[J], scratch."""
    narrow: F64
    """float64[C]: 1 / messages at full speed that a channel carries at once."""
    rings: I32
    """int32[C]: messages of rings on the channel, …"""
    ring: I32
    """int32[C, ·]: … and their items."""
    limit: I32
    """int32[C]: how many there may be."""
    ceiling: float
    """The load, all messages at once, above which no channel shall be."""
    state: F64
    """float64[4]: the cost; messages of rings above the limits; load above the ceiling; 1 after a
    list was full."""


def sums_of(
    demand: PhaseDemand, path: I32, width: F64, limit: I32, price: F64, ceiling: float
) -> Sums:
    """The sums of all items on `path` int32[I, hops]."""
    collectives, channels = demand.begin.shape[0], len(width)
    need = _lengths(demand, path, collectives, channels)
    room = np.concatenate([[0], np.cumsum(need + need // 2 + 8)]).astype(np.int64)
    crossed = path[demand.ring]
    rings = np.bincount(crossed[crossed >= 0], minlength=channels)
    phases = len(demand.collective)
    sums = Sums(
        room=room,
        used=np.zeros(collectives * channels, np.int32),
        phase=np.zeros(room[-1], np.int32),
        amount=np.zeros(room[-1]),
        total=np.zeros((collectives, channels)),
        norm=np.zeros(phases),
        price=price,
        own=np.zeros(max(1, demand.jobs)),
        narrow=1.0 / width,
        rings=np.zeros(channels, np.int32),
        ring=np.zeros((channels, int(rings.max(initial=0)) + SLOTS), np.int32),
        limit=limit,
        ceiling=ceiling,
        state=np.zeros(4),
    )
    _carry_all(demand, path, sums)
    return sums


@kernel
def _lengths(
    demand: PhaseDemand, path: I32, collectives: Number, channels: Number
) -> I64:  # pragma: no cover
    """int64[P · C]: at most so many phases use each channel."""
    need = np.zeros(collectives * channels, np.int64)
    for i in range(len(demand.leaf)):
        for u in range(demand.use[i], demand.use[i + 1]):
            base = demand.collective[demand.use_phase[u]] * channels
            for h in range(path.shape[1]):
                if path[i, h] < 0:
                    break
                need[base + path[i, h]] += 1
    return need


@kernel
def _carry_all(demand: PhaseDemand, path: I32, sums: Sums) -> None:  # pragma: no cover
    """Adds all items to empty sums. Phase by phase, so that a phase that a list has is its last;
    then each channel is weighed once."""
    collectives, channels = sums.total.shape
    for g in range(len(demand.collective)):
        p = demand.collective[g]
        for k in range(demand.sent[g], demand.sent[g + 1]):
            i = demand.sent_item[k]
            for h in range(path.shape[1]):
                c = path[i, h]
                if c < 0:
                    break
                q = p * channels + c
                end = sums.room[q] + sums.used[q]
                if sums.used[q] and sums.phase[end - 1] == g:
                    sums.amount[end - 1] += demand.sent_amount[k]
                else:
                    sums.phase[end], sums.amount[end] = g, demand.sent_amount[k]
                    sums.used[q] += 1
                sums.total[p, c] += demand.sent_amount[k] * demand.share[g]
    for i in range(len(demand.leaf)):
        if demand.ring[i]:
            for h in range(path.shape[1]):
                if path[i, h] < 0:
                    break
                _carry_ring(sums, i, path[i, h], ADD)
    for c in range(channels):
        sums.state[HOT] += max(0.0, sums.total[0, c] * sums.narrow[c] - sums.ceiling)
        for p in range(collectives):
            _weigh(demand, sums, p, c, 1.0)


@kernel_part
def carry_item(
    demand: PhaseDemand, sums: Sums, i: Number, row: I32, sign: Number
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or removes (-1) an item on the channels of `row` int32[hops]."""
    channels = len(sums.narrow)
    first, last = demand.use[i], demand.use[i + 1]
    for h in range(len(row)):
        c = row[h]
        if c < 0:
            break
        if demand.ring[i]:
            _carry_ring(sums, i, c, sign)
        u = first
        while u < last:
            p = demand.collective[demand.use_phase[u]]
            q = p * channels + c
            _weigh(demand, sums, p, c, -1.0)
            while u < last and demand.collective[demand.use_phase[u]] == p:
                _carry_phase(demand, sums, q, demand.use_phase[u], sign * demand.use_amount[u])
                before = sums.total[p, c]
                now = before + sign * demand.use_amount[u] * demand.share[demand.use_phase[u]]
                sums.total[p, c] = now
                if p == 0:
                    over = max(0.0, now * sums.narrow[c] - sums.ceiling)
                    over -= max(0.0, before * sums.narrow[c] - sums.ceiling)
                    sums.state[HOT] += over
                u += 1
            _weigh(demand, sums, p, c, 1.0)


@kernel_part
def _carry_ring(sums: Sums, i: Number, c: Number, sign: Number) -> None:  # pragma: no cover
    count = sums.rings[c]
    if sign > 0:
        if count == sums.ring.shape[1]:
            sums.state[FULL] = 1.0
        else:
            sums.ring[c, count] = i
        sums.state[OVER] += count >= sums.limit[c]
    else:
        for k in range(min(count, sums.ring.shape[1])):
            if sums.ring[c, k] == i:
                sums.ring[c, k] = sums.ring[c, min(count, sums.ring.shape[1]) - 1]
                break
        sums.state[OVER] -= count > sums.limit[c]
    sums.rings[c] = count + sign


@kernel_part
def _carry_phase(
    demand: PhaseDemand, sums: Sums, q: Number, g: Number, amount: float
) -> None:  # pragma: no cover
    begin, end = sums.room[q], sums.room[q] + sums.used[q]
    k = begin
    while k < end and sums.phase[k] != g:
        k += 1
    if k < end:
        sums.amount[k] += amount
        if sums.amount[k] < 1e-9:
            sums.phase[k], sums.amount[k] = sums.phase[end - 1], sums.amount[end - 1]
            sums.used[q] -= 1
    elif amount < 0:
        return  # it found no room when it came
    elif end < sums.room[q + 1]:
        sums.phase[k], sums.amount[k] = g, amount
        sums.used[q] += 1
    else:
        sums.state[FULL] = 1.0


@kernel_part
def _weigh(
    demand: PhaseDemand, sums: Sums, p: Number, c: Number, sign: float
) -> None:  # pragma: no cover
    """Adds or removes what the phases on a channel meet there."""
    q = p * len(sums.narrow) + c
    begin, end = sums.room[q], sums.room[q] + sums.used[q]
    rest, narrow, own = sums.total[p, c], sums.narrow[c], sums.own
    most = 0.0
    for k in range(begin, end):
        most = max(most, sums.amount[k])
    if (rest + most) * narrow <= 1.0:
        return
    for k in range(begin, end):
        g = sums.phase[k]
        own[demand.job[g]] += sums.amount[k] * demand.share[g]
    for k in range(begin, end):
        g = sums.phase[k]
        over = (sums.amount[k] + rest - own[demand.job[g]]) * narrow - 1.0
        if over > 1e-9:
            before = sums.norm[g]
            after = max(0.0, before + sign * over**4)
            sums.norm[g] = after
            root = np.sqrt(np.sqrt(after + SOFT)) - np.sqrt(np.sqrt(before + SOFT))
            sums.state[COST] += sums.price[g] * root
    for k in range(begin, end):
        own[demand.job[sums.phase[k]]] = 0.0


@kernel_part
def change_of(
    demand: PhaseDemand, sums: Sums, i: Number, c: Number, sign: float
) -> float:  # pragma: no cover
    """By how much the cost grows if item `i` is added to (`sign` 1) or removed from (-1) a channel,
    as if no phase met others elsewhere, too. Nothing changes."""
    own, narrow = sums.own, sums.narrow[c]
    first, last = demand.use[i], demand.use[i + 1]
    whole = 0.0
    u = first
    while u < last:
        p = demand.collective[demand.use_phase[u]]
        v, more = u, 0.0
        while v < last and demand.collective[demand.use_phase[v]] == p:
            more += demand.use_amount[v] * demand.share[demand.use_phase[v]]
            v += 1
        q = p * len(sums.narrow) + c
        begin, end = sums.room[q], sums.room[q] + sums.used[q]
        rest, most = sums.total[p, c], 0.0
        for k in range(u, v):
            most = max(most, demand.use_amount[k])
        for k in range(begin, end):
            most = max(most, sums.amount[k])
        if (rest + 2 * most + more) * narrow <= 1.0:
            u = v
            continue
        mine = demand.job[demand.use_phase[u]]
        for k in range(begin, end):
            g = sums.phase[k]
            own[demand.job[g]] += sums.amount[k] * demand.share[g]
        for k in range(begin, end):
            g = sums.phase[k]
            over = (sums.amount[k] + rest - own[demand.job[g]]) * narrow - 1.0
            step = 0.0
            if demand.job[g] != mine:
                step = more
            else:
                for w in range(u, v):
                    if demand.use_phase[w] == g:
                        step = demand.use_amount[w]
            whole += _step(sums, g, over, over + sign * step * narrow)
        if sign > 0:
            for w in range(u, v):
                g = demand.use_phase[w]
                there = False
                for k in range(begin, end):
                    there |= sums.phase[k] == g
                if not there:
                    over = (demand.use_amount[w] + rest - own[mine]) * narrow - 1.0
                    whole += _step(sums, g, -1.0, over)
        for k in range(begin, end):
            own[demand.job[sums.phase[k]]] = 0.0
        u = v
    return whole


@kernel_part
def _step(sums: Sums, g: Number, before: float, after: float) -> float:  # pragma: no cover
    """What it costs that a channel of a phase, above 1 by `before`, is so by `after`."""
    grows = max(0.0, after) ** 4 - max(0.0, before) ** 4
    if grows == 0.0:
        return 0.0
    norm = sums.norm[g]
    now = max(0.0, norm + grows)
    return float(sums.price[g] * (np.sqrt(np.sqrt(now + SOFT)) - np.sqrt(np.sqrt(norm + SOFT))))
