"""Few exceptions: entries that leave the template because jobs would contend there.

Tables that ignore jobs (`template.py`) serve most of them well. What is left are channels that
carry more than `most`. The search takes one job after the other, those with the heaviest routes
first, and their trees in turn. In a tree it tries the switches whose paths are to blame, the worst
first, each once (`tree_moves.py`). An exception that is needed no more goes back to the template.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U8, U32
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.job_loads import ADD, REMOVE, Paths
from sar_agent.routing.tree_moves import (
    ANY,
    BACK,
    COOL,
    EPSILON,
    HOT,
    NEXT,
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


@kernel
def except_paths(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    jobs: U32,
    most: float,
    theta: float,
    template: U8,
    egress: U8,
) -> int:  # pragma: no cover
    """Moves paths of the trees of `jobs`, in this order; `egress` uint8[D, S] and the loads change.
    Returns how many moves it made."""
    moves, nothing = 0, np.uint32(0)
    for j in jobs:
        for m in range(work.member[j], work.member[j + 1]):
            d = work.terminal[m]
            terms = Move(work.root[d], nothing, nothing, 0, most, theta)
            moves += _improve_tree(paths, work, scratch, terms, d, template[d], egress[d])
    return moves


@kernel_part
def _improve_tree(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    terms: Move,
    d: Number,
    template: U8,
    tree: U8,
) -> int:  # pragma: no cover
    """Tries the paths to terminal `d` that are to blame, the worst first; how many moved."""
    blame, touched, at = scratch.blame, scratch.touched, scratch.at
    root, one = terms.root, np.uint32(1)
    count = gather(paths, work, scratch, d, tree)
    worst = 0.0
    for x in range(count):
        v = touched[x]
        blame[x] = _blame(paths, scratch, terms, v, template, tree)[0]
        worst = max(worst, blame[x])
    moves, tried = 0, count
    if worst > 0.0:
        row = find_places(paths, scratch, root)
        start = paths.cache.start[row]
    while worst > 0.0:
        x = 0
        for y in range(1, tried):
            if blame[y] > blame[x]:
                x = y
        worst, blame[x] = blame[x], 0.0
        v = touched[x]
        if scratch.flow[v] == 0 or start[at[v] + one] - start[at[v]] < 2:
            continue
        reach = _blame(paths, scratch, terms, v, template, tree)[1]
        if reach == STAY:
            continue
        move = Move(root, row, v, scratch.flow[v], terms.most, terms.theta)
        carry(paths, scratch, move, tree, REMOVE)
        present = cheapest(paths, scratch, move, template, tree, STAY)
        price = cheapest(paths, scratch, move, template, tree, min(reach, NEXT))
        if reach == ANY and price > COOL:
            price = cheapest(paths, scratch, move, template, tree, ANY)
        if price < present - EPSILON:
            moves += 1
            count = take(paths, scratch, move, count, tree)
        carry(paths, scratch, move, tree, ADD)
    forget(scratch, count, template, tree)
    return moves


@kernel_part
def _blame(
    paths: Paths, scratch: Scratch, terms: Move, v: Number, template: U8, tree: U8
) -> tuple[float, Number]:  # pragma: no cover
    """How much is wrong with the load of the path from `v`, and how far to look for a better
    one."""
    target, by_port, load, flow = paths.graph.target, paths.by_port, paths.load, scratch.flow
    wrong, reach = 0.0, STAY
    w = v
    while w != terms.root:
        c = by_port[w, tree[w]]
        if c >= len(target):
            break
        if tree[w] != template[w] and flow[w] == flow[v]:
            wrong += EPSILON
            reach = max(reach, BACK)
        if load[c] > terms.most + EPSILON:
            wrong += HOT * (load[c] - terms.most)
            reach = ANY
        w = target[c]
    return wrong, reach


@kernel
def drop_unused(
    paths: Paths, work: DemandItems, scratch: Scratch, terminals: U32, template: U8, egress: U8
) -> None:  # pragma: no cover
    """Of the trees of `terminals`, makes entries that no job uses those of the template."""
    for d in terminals:
        count = gather(paths, work, scratch, d, egress[d])
        for v in range(egress.shape[1]):
            if scratch.flow[v] == 0:
                egress[d, v] = template[d, v]
        forget(scratch, count, template[d], egress[d])
