"""The last hot channels: a tabu search over single moves.

Where every path over a hot channel would heat another one more, no single move helps
(`exceptions.py`), but a few in a row do: a heavy path is moved although that heats another channel,
and light ones then make way for it. Each step takes the hottest channel and makes the best move of
a path that crosses it, even if that costs; a path that has moved stays for `TENURE` steps (F.
Glover, "Tabu search", 1989). The best tables seen are kept. A step reads only the trees over one
channel, so it takes about as long on any fabric.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I64, U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.job_loads import ADD, REMOVE, Paths, carry_tree
from sar_agent.routing.tree_moves import (
    ANY,
    EPSILON,
    STAY,
    Move,
    Number,
    Scratch,
    carry,
    cheapest,
    find_places,
    forget,
    gather,
    take,
)
from sar_agent.util.kernels import kernel, kernel_part

TENURE = 12
PATIENCE = 60
"""Steps without better tables after which the search ends."""
NEARLY = 1.002
"""Times `most`: a load that is no larger is no reason to search."""
CLOSED = 4.0
"""Load that is added to the channel that is to be relieved, so that no path returns to it."""


@kernel
def cool(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    source: U32,
    terminals: U32,
    most: float,
    theta: float,
    template: U8,
    egress: U8,
) -> None:  # pragma: no cover
    """Lowers loads above `most`; `egress` uint8[D, S] and the loads change. `source` uint32[C] are
    the switches that channels leave, `terminals` the destinations of jobs."""
    load, port, flow = paths.load, paths.graph.port, scratch.flow
    moved = np.full((TENURE, 2), -1, np.int64)
    log = np.empty((64, 3), np.int64)  # terminal, switch, port before
    logged = kept = steps = since = 0
    best = _overload(load, most)
    while since < PATIENCE:
        hot = _hottest(load, source, paths.graph.rank)
        if load[hot] <= NEARLY * most:
            break
        u = source[hot]
        least, at_d, at_v = np.inf, np.int64(-1), np.uint32(0)
        for d in terminals:
            if egress[d, u] != port[hot]:
                continue
            count, tree = gather(paths, work, scratch, d, egress[d]), egress[d]
            if flow[u]:
                root = work.root[d]
                row = find_places(paths, scratch, root)
                for x in range(count):
                    v = scratch.touched[x]
                    if not _passes(paths, v, u, root, tree) or _is_in(moved, d, v):
                        continue
                    move = Move(root, row, v, flow[v], most, theta)
                    price = _try(paths, scratch, move, hot, template[d], tree)
                    if price < least:
                        least, at_d, at_v = price, np.int64(d), v
            forget(scratch, count, template[d], tree)
        if at_d < 0:
            break
        d, v, tree = np.uint32(at_d), at_v, egress[at_d]
        root, before = work.root[d], tree.copy()
        row = find_places(paths, scratch, root)
        count = gather(paths, work, scratch, d, tree)
        move = Move(root, row, v, flow[v], most, theta)
        _try(paths, scratch, move, hot, template[d], tree)
        carry(paths, scratch, move, tree, REMOVE)
        count = take(paths, scratch, move, count, tree)
        carry(paths, scratch, move, tree, ADD)
        forget(scratch, count, template[d], tree)
        for x in range(count):
            w = scratch.touched[x]
            if tree[w] != before[w]:
                if logged == len(log):
                    longer = np.empty((2 * len(log), 3), np.int64)
                    for k in range(logged):
                        for i in range(3):
                            longer[k, i] = log[k, i]
                    log = longer
                log[logged, 0], log[logged, 1], log[logged, 2] = d, w, before[w]
                logged += 1
        moved[steps % TENURE, 0], moved[steps % TENURE, 1] = d, v
        steps += 1
        since += 1
        now = _overload(load, most)
        if now < best - EPSILON:
            best, kept, since = now, logged, 0
    while logged > kept:  # back to the best tables
        logged -= 1
        d = np.uint32(log[logged, 0])
        carry_tree(paths, work, d, egress[d], REMOVE)
        egress[d, log[logged, 1]] = log[logged, 2]
        carry_tree(paths, work, d, egress[d], ADD)


@kernel_part
def _try(
    paths: Paths, scratch: Scratch, move: Move, hot: Number, template: U8, tree: U8
) -> float:  # pragma: no cover
    """How much more than the present path the cheapest one away from the channel `hot` costs; it is
    in `pick`."""
    carry(paths, scratch, move, tree, REMOVE)
    present = cheapest(paths, scratch, move, template, tree, STAY)
    paths.load[hot] += CLOSED
    price = cheapest(paths, scratch, move, template, tree, ANY)
    paths.load[hot] -= CLOSED
    carry(paths, scratch, move, tree, ADD)
    return price - present


@kernel_part
def _hottest(load: F64, source: U32, rank: U32) -> Number:  # pragma: no cover
    """The channel with the largest load; of several, that of the switch of lowest GUID, then the
    lowest port."""
    hot = 0
    for c in range(1, len(load)):
        if load[c] > load[hot] or (load[c] == load[hot] and rank[source[c]] < rank[source[hot]]):
            hot = c
    return hot


@kernel_part
def _overload(load: F64, most: float) -> float:  # pragma: no cover
    total = 0.0
    for value in load:
        over = value - most
        if over > EPSILON:
            total += over * over
    return total


@kernel_part
def _is_in(pairs: I64, d: Number, v: Number) -> bool:  # pragma: no cover
    found = False
    for k in range(len(pairs)):
        found |= pairs[k, 0] == d and pairs[k, 1] == v
    return found


@kernel_part
def _passes(paths: Paths, v: Number, u: Number, root: Number, tree: U8) -> bool:  # pragma: no cover
    while v != root:
        if v == u:
            return True
        v = paths.graph.target[paths.by_port[v, tree[v]]]
    return False
