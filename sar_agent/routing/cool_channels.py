"""The last hot channels: a tabu search over single moves.

Where every path over a hot channel would heat another one more, no single move helps
(`exceptions.py`), but a few in a row do: a heavy path first pushes its way, then light ones give
way to it. Each step looks at the hottest channel, and makes the best move of a path that crosses
it, even if that costs; a path that has moved stays for `TENURE` steps (F. Glover, "Tabu search",
1989). The best tables seen are kept. A step reads only the trees over one channel, so it takes
about as long on any fabric.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I64, U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.exceptions import (
    ANY,
    EPSILON,
    STAY,
    Scratch,
    _carry,
    _cheapest,
    _drop_untouched,
    _forget,
    _take,
    gather,
)
from sar_agent.routing.graph.shortest_path_dag import dag_row
from sar_agent.routing.job_loads import Paths, _carry_tree
from sar_agent.util.kernels import kernel, kernel_part

TENURE = 12
PATIENCE = 60
"""Steps without better tables after which the search ends."""


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
) -> int:  # pragma: no cover
    """Lowers loads above `most`; `egress` uint8[D, S] and the loads change. Returns how many steps
    it kept. `source` uint32[C] are the switches that channels leave, `terminals` the destinations
    of jobs."""
    graph, load, flow = paths.graph, paths.load, scratch.flow
    target, port, by_port = graph.target, graph.port, paths.by_port
    none = np.empty(0, np.bool_)
    moved = np.full((TENURE, 2), -1, np.int64)
    log = np.empty((64, 3), np.int64)  # terminal, switch, port before
    logged = kept = 0
    best = _overload(load, most)
    since = steps = 0
    while best > 0 and since < PATIENCE:
        hot = load.argmax()
        if load[hot] <= most + EPSILON:
            break
        least, at_d, at_v = np.inf, np.int64(-1), np.uint32(0)
        u = source[hot]
        for d in terminals:
            if egress[d, u] != port[hot]:
                continue
            count = gather(paths, work, scratch, d, egress[d])
            if flow[u]:
                root = work.root[d]
                row = _find_places(paths, scratch, root)
                parts = most, theta, False, template[d], egress[d]
                for x in range(count):
                    v = scratch.touched[x]
                    if not _passes(paths, v, u, root, egress[d]) or _is_in(moved, d, v):
                        continue
                    amount = flow[v]
                    _carry(paths, scratch, v, root, amount, 0, 1, 0, egress[d], -1)
                    present = _cheapest(paths, scratch, row, v, amount, 0, 1, *parts, STAY)
                    load[hot] += 4.0  # anywhere but here
                    price = _cheapest(paths, scratch, row, v, amount, 0, 1, *parts, ANY)
                    load[hot] -= 4.0
                    _carry(paths, scratch, v, root, amount, 0, 1, 0, egress[d], 1)
                    if price - present < least:
                        least, at_d, at_v = price - present, np.int64(d), v
            _forget(scratch, count)
        steps += 1
        since += 1
        if at_d < 0:
            break
        d, v, tree = at_d, at_v, egress[at_d]
        root, before = work.root[d], tree.copy()
        row = _find_places(paths, scratch, root)
        count = gather(paths, work, scratch, d, tree)
        amount = flow[v]
        _carry(paths, scratch, v, root, amount, 0, 1, 0, tree, -1)
        load[hot] += 4.0
        _cheapest(paths, scratch, row, v, amount, 0, 1, most, theta, False, template[d], tree, ANY)
        load[hot] -= 4.0
        count = _take(paths, scratch, v, root, count, tree)
        _carry(paths, scratch, v, root, amount, 0, 1, 0, tree, 1)
        _drop_untouched(scratch, count, template[d], tree)
        for x in range(count):
            w = scratch.touched[x]
            if tree[w] != before[w]:
                if logged == len(log):
                    longer = np.empty((2 * len(log), 3), np.int64)
                    longer[:logged] = log
                    log = longer
                log[logged, 0], log[logged, 1], log[logged, 2] = d, w, before[w]
                logged += 1
        _forget(scratch, count)
        moved[steps % TENURE, 0], moved[steps % TENURE, 1] = d, v
        now = _overload(load, most)
        if now < best - EPSILON:
            best, kept, since = now, logged, 0
    while logged > kept:  # back to the best tables
        logged -= 1
        d = log[logged, 0]
        _carry_tree(paths, work, d, egress[d], -1)
        egress[d, log[logged, 1]] = log[logged, 2]
        while logged > kept and log[logged - 1, 0] == d:
            logged -= 1
            egress[d, log[logged, 1]] = log[logged, 2]
        _carry_tree(paths, work, d, egress[d], 1)
    return kept


@kernel_part
def _overload(load: F64, most: float) -> float:  # pragma: no cover
    total = 0.0
    for value in load:
        over = value - most
        if over > EPSILON:
            total += over * over
    return total


@kernel_part
def _find_places(paths: Paths, scratch: Scratch, root: int) -> int:  # pragma: no cover
    """The row of the root in the cache; sets the place of each switch in it."""
    row = dag_row(paths.graph, paths.cache, root)
    for i in range(paths.cache.size[row]):
        scratch.at[paths.cache.order[row, i]] = i
    return row


@kernel_part
def _is_in(pairs: I64, d: int, v: int) -> bool:  # pragma: no cover
    for k in range(len(pairs)):
        if pairs[k, 0] == d and pairs[k, 1] == v:
            return True
    return False


@kernel_part
def _passes(paths: Paths, v: int, u: int, root: int, tree: U8) -> bool:  # pragma: no cover
    while v != root:
        if v == u:
            return True
        v = paths.graph.target[paths.by_port[v, tree[v]]]
    return False
