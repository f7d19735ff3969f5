"""Simulated annealing of the jobs' tables, for networks of few switches (S. Kirkpatrick et al.,
"Optimization by simulated annealing", Science 220, 1983).

Placing paths one at a time ends where no single move lowers the largest load. On tori, Dragonflies
and irregular networks of some ten switches that is up to a third above the least possible. Here one
entry at a time is changed at random, and the traffic behind it follows; changes for the worse are
taken with a probability that falls as the search goes on. Several short searches find more than a
long one. A move costs 50 to 100 ns. The limit is a number of moves, and the random numbers are our
own, so that the tables are the same everywhere.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F32, I64, U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.util.beside import second_processor
from sar_agent.util.kernels import kernel, kernel_part

SEARCHES = 8
MOVES, FOR_EACH = 2_000_000, 4_000
"""The most moves of a search, and the moves for each entry with a choice. All searches together
take at most some 0.8 s on two processors."""
FEW = 2**15
"""The most entries with a choice: beyond it, moves are too few for each."""
HOT, COLD = 0.2, 1e-4
"""The first and the last temperature, as shares of the sum that is to become least."""
STEP = 1024
"""Moves at one temperature."""
DARK = 0.05
"""The cost of a channel that carries nothing; that of the fullest one is 1 before the search."""
FIRST_STATE = 88_172_645_463_325_252
"""Of the random numbers, as in Marsaglia's paper."""


def annealed(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: DemandItems,
    share: F32,
    dests: U32,
    enough: float,
    egress: U8,
) -> U8:
    """uint8[D, S]: tables of `dests` (terminals with jobs) with the smallest largest load that was
    found, `egress` itself where none was better or the network is too large.

    `share` float32[C]: a unit of load as a share of what the channel carries. The search is for
    loads of `enough`. `cache` holds the DAGs of all `dests`."""

    def search(number: int) -> tuple[float, int, U8]:
        tables, state = egress.copy(), np.uint64(FIRST_STATE + number)
        args = graph, cache, by_port, work, share, dests, enough, state
        return _anneal(*args, tables), number, tables

    with second_processor() as second:
        others = second.start(lambda: [search(number) for number in range(1, SEARCHES, 2)])
        found = [search(number) for number in range(0, SEARCHES, 2)]
        least, _, tables = min([*found, *others()], key=lambda each: each[:2])
    return tables if least < np.inf else egress


@kernel
def _anneal(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: DemandItems,
    share: F32,
    dests: U32,
    enough: float,
    state: np.uint64,
    egress: U8,
) -> float:  # pragma: no cover
    """One search. Writes the best tables into `egress` and returns their largest load; infinite,
    and no change, where there are more than `FEW` entries with a choice, or none was better.

    The sum of the 16th powers of all loads is to become least. No more channels than before carry
    nothing."""
    switches, channels = np.uint32(len(graph.offset) - 1), len(graph.target)
    via = np.full((len(dests), switches), channels, np.uint32)
    flow = np.zeros((len(dests), switches), np.int64)
    units = np.zeros(channels, np.int64)
    entries = np.empty((FEW, 2), np.uint32)  # a destination's number, a place in its DAG
    size = 0
    for k in range(len(dests)):
        d = dests[k]
        root = work.root[d]
        row = dag_row(graph, cache, root)
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                flow[k, work.leaf[i]] += work.item[i]
        for i in range(np.int64(cache.size[row]) - 1, 0, -1):
            v = cache.order[row, i]
            c = by_port[v, egress[d, v]]
            if c >= channels:
                return np.inf  # a leaf that is cut off
            via[k, v] = c
            units[c] += flow[k, v]
            flow[k, graph.target[c]] += flow[k, v]
            if cache.start[row, i + 1] - cache.start[row, i] > 1:
                if size == FEW:
                    return np.inf
                entries[size, 0] = k
                entries[size, 1] = i
                size += 1
    if size == 0:
        return np.inf
    first, used = _largest(units, share)
    least, best_via = first, via.copy()
    full = _at_least(units, share, least)
    scale = share / first
    cost = np.empty(channels)
    total = 0.0
    for c in range(channels):
        cost[c] = _cost(units[c], scale[c])
        total += cost[c]
    in_use = used
    moves = min(MOVES, FOR_EACH * size)
    temperature, cooling = HOT, (COLD / HOT) ** (STEP / moves)
    for move in range(moves):
        if move % STEP == STEP - 1:
            temperature *= cooling
        state = _next_random(state)
        k, at = entries[np.uint32((state >> np.uint64(32)) % np.uint64(size))]
        root = work.root[dests[k]]
        row = cache.slot[root]
        v = cache.order[row, at]
        moved = flow[k, v]
        if moved == 0:
            continue
        begin, ways = cache.start[row, at], cache.start[row, at + 1] - cache.start[row, at]
        new = cache.edge[row, begin + np.uint32(state & np.uint64(0xFFFFFFFF)) % ways]
        old = via[k, v]
        if new == old:
            continue
        change = 0.0
        for stage in range(4):  # off the old way and onto the new one; back again if refused
            if stage == 2:
                if change > 0:
                    state = _next_random(state)
                    chance = (state >> np.uint64(11)) * 2.0**-53
                if change <= 0 or chance < np.exp(-change / (temperature * total)):
                    via[k, v] = new
                    total += change
                    break
            c = new if stage == 1 or stage == 2 else old
            amount = moved if stage % 2 else -moved
            grows = 0.0
            while True:
                full -= units[c] * share[c] >= least
                in_use -= units[c] > 0
                units[c] += amount
                full += units[c] * share[c] >= least
                in_use += units[c] > 0
                before, cost[c] = cost[c], _cost(units[c], scale[c])
                grows += cost[c] - before
                w = graph.target[c]
                flow[k, w] += amount
                if w == root:
                    break
                c = via[k, w]
            change += grows
        if full == 0 and in_use >= used:
            least = _largest(units, share)[0]
            full = _at_least(units, share, least)
            best_via = via.copy()
            if least <= enough:
                break
    if least >= first:
        return np.inf
    for n in range(size):
        k, at = entries[n]
        v = cache.order[cache.slot[work.root[dests[k]]], at]
        egress[dests[k], v] = graph.port[best_via[k, v]]
    return least


@kernel_part
def _cost(units: int, share: float) -> float:  # pragma: no cover
    return _power(units * share) if units else DARK


@kernel_part
def _power(load: float) -> float:  # pragma: no cover
    """Its 16th power."""
    square = load * load
    fourth = square * square
    eighth = fourth * fourth
    return eighth * eighth


@kernel_part
def _largest(units: I64, share: F32) -> tuple[float, int]:  # pragma: no cover
    """The largest load, and the number of channels that carry something."""
    largest, used = 0.0, 0
    for c in range(len(units)):
        largest = max(largest, units[c] * share[c])
        used += units[c] > 0
    return largest, used


@kernel_part
def _at_least(units: I64, share: F32, load: float) -> int:  # pragma: no cover
    """How many channels have such a load, or more."""
    count = 0
    for c in range(len(units)):
        count += units[c] * share[c] >= load
    return count


@kernel_part
def _next_random(state: np.uint64) -> np.uint64:  # pragma: no cover
    """The next number of Marsaglia's xorshift with 64 bits (Journal of Statistical Software 8,
    2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state
