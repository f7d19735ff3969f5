"""Few exceptions: entries that leave the template because jobs would contend there.

Tables that ignore jobs (`template.py`) serve most of them well. What is left are channels that
carry more than `most`, or more than the jobs at their switches need (`limit`), and messages of one
job that meet in a phase of a shift. The search takes one job after the other, those with the
heaviest routes first, and their trees in turn. In a tree it tries the switches whose paths are to
blame, the worst first, each once (`tree_moves.py`). An exception that is needed no more goes back
to the template.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, U8, U32, Bool
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.job_loads import ADD, REMOVE, Paths
from sar_agent.routing.tree_moves import (
    ANY,
    BACK,
    COOL,
    EPSILON,
    HOT,
    NEXT,
    PHASED,
    STAY,
    WARM,
    Move,
    Number,
    Scratch,
    carry,
    cheapest,
    find_places,
    forget,
    gather,
    row_of,
    take,
)
from sar_agent.util.kernels import kernel, kernel_part


@kernel
def except_paths(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    jobs: U32,
    limit: F64,
    most: float,
    theta: float,
    farthest: Number,
    template: U8,
    egress: U8,
) -> int:  # pragma: no cover
    """Moves paths of the trees of `jobs`, in this order, no farther than `farthest`; `egress`
    uint8[D, S] and the loads change. Returns how many moves it made."""
    moves, nothing = 0, np.uint32(0)
    for j in jobs:
        size = np.int64(work.member[j + 1]) - np.int64(work.member[j])
        phased = work.phased[j] and size <= PHASED
        if phased:
            _count_messages(paths, work, scratch, j, size, egress)
        for m in range(work.member[j], work.member[j + 1]):
            d = work.terminal[m]
            looked = size if phased else 0
            terms = Move(work.root[d], nothing, nothing, 0, 0, 0, looked, limit, most, theta)
            moves += _improve_tree(paths, work, scratch, terms, m, farthest, template[d], egress[d])
        last = len(scratch.rows) - 1
        count = scratch.rows[last]
        for k in range(count):
            scratch.row[scratch.rows[k]] = -1
            scratch.own[scratch.rows[k]] = 0
        scratch.meets[: count * size] = 0
        scratch.rows[last] = 0
    return moves


@kernel_part
def _count_messages(
    paths: Paths, work: DemandItems, scratch: Scratch, j: Number, size: Number, egress: U8
) -> None:  # pragma: no cover
    """Counts the job's messages on each channel, phase by phase."""
    target, by_port = paths.graph.target, paths.by_port
    leaf, item, rank, rank_offset = work.leaf, work.item, work.rank, work.rank_offset
    own, meets = scratch.own, scratch.meets
    for q in range(size):
        m = work.member[j] + q
        d = work.terminal[m]
        root, tree = work.root[d], egress[d]
        for i in range(work.first[m], work.past[m]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break  # a leaf that is cut off
                own[c] += item[i]
                base = row_of(scratch, c) * size
                for k in range(rank_offset[i], rank_offset[i + 1]):
                    phase = q - np.int64(rank[k])
                    meets[base + phase + (size if phase < 0 else 0)] += np.uint16(1)
                v = target[c]


@kernel_part
def _improve_tree(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    terms: Move,
    m: Number,
    farthest: Number,
    template: U8,
    tree: U8,
) -> int:  # pragma: no cover
    """Tries the paths to member `m` that are to blame, the worst first; returns how many moved."""
    blame, touched, at, met = scratch.blame, scratch.touched, scratch.at, scratch.met
    root, one = terms.root, np.uint32(1)
    count = gather(paths, work, scratch, work.terminal[m], tree)
    if terms.size:
        _find_meetings(paths, work, scratch, terms, m, tree)
    worst = 0.0
    for x in range(count):
        v = touched[x]
        blame[x] = met[v] + _blame(paths, scratch, terms, v, template, tree)[0]
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
        if met[v] > 0.0:
            reach = max(reach, NEXT)
        reach = min(reach, farthest)
        if reach == STAY:
            continue
        messages = _list_messages(paths, work, scratch, terms, m, v, tree)
        amount, own = scratch.flow[v], messages * work.unit[work.job[m]]
        prices = terms.limit, terms.most, terms.theta
        move = Move(root, row, v, amount, own, messages, terms.size, *prices)
        carry(paths, scratch, move, tree, REMOVE)
        present = cheapest(paths, scratch, move, template, tree, STAY)
        price = cheapest(paths, scratch, move, template, tree, min(reach, NEXT))
        if reach == ANY and price > COOL:
            price = cheapest(paths, scratch, move, template, tree, ANY)
        if price < present - EPSILON:
            moves += 1
            count = take(paths, scratch, move, count, tree)
        carry(paths, scratch, move, tree, ADD)
    for i in range(work.first[m], work.past[m]):
        met[work.leaf[i]] = 0.0
    forget(scratch, count, template, tree)
    return moves


@kernel_part
def _find_meetings(
    paths: Paths, work: DemandItems, scratch: Scratch, terms: Move, m: Number, tree: U8
) -> None:  # pragma: no cover
    """Sets for each leaf switch how often the messages from there to member `m` meet others of the
    job."""
    q = np.int64(m) - np.int64(work.member[work.job[m]])
    width, row, meets = paths.width, scratch.row, scratch.meets
    target, by_port, rank, rank_offset = (
        paths.graph.target,
        paths.by_port,
        work.rank,
        work.rank_offset,
    )
    for i in range(work.first[m], work.past[m]):
        v = work.leaf[i]
        total = 0.0
        while v != terms.root:
            c = by_port[v, tree[v]]
            if c >= len(target):
                break
            base = row[c] * terms.size
            for k in range(rank_offset[i], rank_offset[i + 1]):
                phase = q - np.int64(rank[k])
                x = meets[base + phase + (terms.size if phase < 0 else 0)]
                if x > 1 and x > width[c]:
                    total += x / width[c] - 1.0
            v = target[c]
        scratch.met[work.leaf[i]] = total


@kernel_part
def _list_messages(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    terms: Move,
    m: Number,
    v: Number,
    tree: U8,
) -> int:  # pragma: no cover
    """Lists in `phase` the phases of the messages to member `m` that pass `v`; how many."""
    target, by_port, leaf = paths.graph.target, paths.by_port, work.leaf
    q = np.int64(m) - np.int64(work.member[work.job[m]])
    count = 0
    if terms.size == 0:
        return count
    for i in range(work.first[m], work.past[m]):
        w = leaf[i]
        while w != v and w != terms.root:
            c = by_port[w, tree[w]]
            if c >= len(target):
                break
            w = target[c]
        if w == v:
            for k in range(work.rank_offset[i], work.rank_offset[i + 1]):
                phase = q - np.int64(work.rank[k])
                scratch.phase[count] = phase + (terms.size if phase < 0 else 0)
                count += 1
    return count


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
        if load[c] > terms.limit[c] + EPSILON:
            wrong += WARM * (load[c] - terms.limit[c])
            reach = max(reach, NEXT)
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


@kernel
def could_go_back(
    paths: Paths, work: DemandItems, freed: Bool, template: U8, egress: U8
) -> Bool:  # pragma: no cover
    """bool[J]: jobs with an exception of which the template's path leads over a channel `freed`
    bool[C] of some load."""
    target, by_port = paths.graph.target, paths.by_port
    jobs = np.zeros(len(work.unit), np.bool_)
    for d in range(np.uint32(len(work.root))):
        root, found = work.root[d], False
        for v in range(np.uint32(egress.shape[1])):
            if egress[d, v] == template[d, v]:
                continue
            w = v
            while w != root:
                c = by_port[w, template[d, w]]
                if c >= len(target):
                    break
                found |= freed[c]
                w = target[c]
        if found:
            for k in range(work.on_offset[d], work.on_offset[d + 1]):
                jobs[work.job[work.on_member[k]]] = True
    return jobs
