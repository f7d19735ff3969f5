"""Few exceptions: entries that leave the template because jobs would contend there.

Tables that ignore jobs (`template.py`) serve most of them well. What is left are channels that
carry more than `most`, and messages of one job that meet in a phase of a shift. The search takes
one job after the other, those with the heaviest routes first, and their trees in turn. In a tree it
looks at the switches whose paths are to blame: it takes all traffic behind such a switch off and
hangs it up again at the least price, makes the best such move of the tree, and looks again. The
price of a path is the sum over its channels of

    HOT times the growth of the square of the load above `most`
    + how often its messages meet others of the same job, phase by phase
    + how many messages of other jobs they meet on average
    + `theta` for each entry that differs from the template.

So one move is one table entry, mostly, and an exception that is needed no more goes back. A switch
that carries other traffic of the tree keeps its entry; others are free (a dynamic program over the
tree's paths, hop by hop).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import F64, I32, I64, U8, U16, U32, Bool
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.shortest_path_dag import dag_row
from sar_agent.routing.job_loads import Paths
from sar_agent.util.kernels import kernel, kernel_part

HOT = 1e9
"""The price of load above `most`, in messages: it decides, and the rest breaks ties."""
COOL = 1e3
"""A path that costs less crosses no channel that is clearly above `most`."""
EPSILON = 1e-9
STAY, BACK, NEXT, ANY = 0, 1, 2, 3
"""Where traffic may go: the present path; the template's; another one of the first switch's
channels, then the template's; any."""
PHASED = 256
"""The most terminals of a job whose phases are looked at: larger jobs have no slack (on
`xgft:2;12,24;1,12` a scattered job of 200 gains 1 %)."""


class Scratch(NamedTuple):
    """Scratch for one tree, and for one job's phases."""

    flow: I64
    """int64[S]: units that pass each switch on their way to the tree's root."""
    touched: U32
    blame: F64
    """float64[S]: what is wrong with the path of each touched switch; 0: nothing."""
    at: U32
    """uint32[S]: each switch's place in the row of the cache."""
    needed: Bool
    queue: U32
    cost: F64
    pick: U32
    phase: U32
    """uint32[·]: phases of the messages that a move takes along."""
    rows: U32
    """uint32[C + 1]: the channels over which the job has paths; last, how many these are."""
    row: I32
    """int32[C]: the place of a channel in `rows`, -1 where it has none."""
    own: I64
    """int64[C]: units of the job on a channel."""
    meets: U16
    """uint16[·]: by row, then phase: messages of the job on the channel."""


def scratch_for(switches: int, channels: int, sizes: NDArray[np.integer]) -> Scratch:
    """Scratch for jobs of these sizes."""
    phased = int(sizes[sizes <= PHASED].max(initial=1))
    return Scratch(
        flow=np.zeros(switches, np.int64),
        touched=np.zeros(switches, np.uint32),
        blame=np.zeros(switches, np.float64),
        at=np.zeros(switches, np.uint32),
        needed=np.zeros(switches, np.bool_),
        queue=np.zeros(switches, np.uint32),
        cost=np.zeros(switches, np.float64),
        pick=np.zeros(switches, np.uint32),
        phase=np.zeros(phased, np.uint32),
        rows=np.zeros(channels + 1, np.uint32),
        row=np.full(channels, -1, np.int32),
        own=np.zeros(channels, np.int64),
        meets=np.zeros(phased * channels, np.uint16),
    )


@kernel
def except_paths(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    jobs: U32,
    most: float,
    theta: float,
    farthest: int,
    template: U8,
    egress: U8,
) -> int:  # pragma: no cover
    """Moves paths of the trees of `jobs`, in this order, no farther than `farthest`; `egress`
    uint8[D, S] and the loads change. Returns how many moves it made."""
    moves = 0
    for j in jobs:
        size = np.int64(work.member[j + 1]) - np.int64(work.member[j])
        phased = work.phased[j] and size <= PHASED
        if phased:
            _count_messages(paths, work, scratch, j, size, egress)
        for q in range(size):
            d = work.terminal[work.member[j] + q]
            moves += _improve_tree(
                paths, work, scratch, j, size, q, d, most, theta, farthest, phased, template[d],
                egress[d],
            )
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
    paths: Paths, work: DemandItems, scratch: Scratch, j: int, size: int, egress: U8
) -> None:  # pragma: no cover
    """Counts the job's messages on each channel, phase by phase."""
    target, by_port = paths.graph.target, paths.by_port
    row, rows, own, meets = scratch.row, scratch.rows, scratch.own, scratch.meets
    leaf, item, rank, rank_offset = work.leaf, work.item, work.rank, work.rank_offset
    last = len(rows) - 1
    for q in range(size):
        d = work.terminal[work.member[j] + q]
        root, tree = work.root[d], egress[d]
        for i in range(work.leaf_offset[j], work.leaf_offset[j + 1]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break
                if row[c] < 0:
                    row[c] = rows[last]
                    rows[row[c]] = c
                    rows[last] += 1
                own[c] += item[i]
                base = row[c] * size
                for k in range(rank_offset[i], rank_offset[i + 1]):
                    phase = q - np.int64(rank[k])
                    meets[base + phase + (size if phase < 0 else 0)] += np.uint16(1)
                v = target[c]


@kernel_part
def _behind(
    paths: Paths, work: DemandItems, scratch: Scratch, j: int, size: int, q: int, v: int, tree: U8
) -> int:  # pragma: no cover
    """Lists in `phase` the phases of the job's messages that pass `v`; returns how many."""
    target, by_port, leaf = paths.graph.target, paths.by_port, work.leaf
    rank, rank_offset, phases = work.rank, work.rank_offset, scratch.phase
    root = work.root[work.terminal[work.member[j] + q]]
    count = 0
    for i in range(work.leaf_offset[j], work.leaf_offset[j + 1]):
        w = leaf[i]
        while w != v and w != root:
            c = by_port[w, tree[w]]
            if c >= len(target):
                break
            w = target[c]
        if w == v:
            for k in range(rank_offset[i], rank_offset[i + 1]):
                phase = q - np.int64(rank[k])
                phases[count] = phase + (size if phase < 0 else 0)
                count += 1
    return count


@kernel_part
def _carry(
    paths: Paths,
    scratch: Scratch,
    v: int,
    root: int,
    amount: int,
    messages: int,
    size: int,
    own_units: int,
    tree: U8,
    sign: int,
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or removes (-1) the traffic behind `v` on its path."""
    target, by_port, share = paths.graph.target, paths.by_port, paths.share
    units, load, flow = paths.units, paths.load, scratch.flow
    row, rows, own, meets, phase = scratch.row, scratch.rows, scratch.own, scratch.meets, scratch.phase
    last = len(rows) - 1
    w = v
    while w != root:
        if w != v:
            flow[w] += sign * amount
        c = by_port[w, tree[w]]
        w = target[c]
        units[c] += sign * amount
        load[c] = units[c] * share[c]
        if not messages:
            continue
        if row[c] < 0:
            row[c] = rows[last]
            rows[row[c]] = c
            rows[last] += 1
        own[c] += sign * own_units
        base = np.int64(row[c]) * size
        for k in range(messages):
            meets[base + phase[k]] += np.uint16(sign)


@kernel_part
def _improve_tree(
    paths: Paths,
    work: DemandItems,
    scratch: Scratch,
    j: int,
    size: int,
    q: int,
    d: int,
    most: float,
    theta: float,
    farthest: int,
    phased: bool,
    template: U8,
    tree: U8,
) -> int:  # pragma: no cover
    """Tries the paths of the tree that are to blame, each once, the worst first; returns how many
    it moved."""
    graph, cache, by_port = paths.graph, paths.cache, paths.by_port
    flow, touched, at, blame = scratch.flow, scratch.touched, scratch.at, scratch.blame
    target, width, load = graph.target, paths.width, paths.load
    leaf, item, rank, rank_offset = work.leaf, work.item, work.rank, work.rank_offset
    row_of, meets = scratch.row, scratch.meets
    one = np.uint32(1)
    root = work.root[d]
    count = 0
    reason = False
    for k in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[k]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break
                if flow[v] == 0:
                    touched[count] = v
                    count += 1
                    reason |= tree[v] != template[v]
                flow[v] += item[i]
                reason |= load[c] > most + EPSILON
                if phased and job == j and not reason:
                    base = np.int64(row_of[c]) * size
                    for r in range(rank_offset[i], rank_offset[i + 1]):
                        phase = q - np.int64(rank[r])
                        x = meets[base + phase + (size if phase < 0 else 0)]
                        reason |= x > 1 and x > width[c]
                v = target[c]
    moves = 0
    if reason:
        row = dag_row(graph, cache, root)
        order, start = cache.order[row], cache.start[row]
        for i in range(cache.size[row]):
            at[order[i]] = i
        tried = count
        for x in range(tried):
            v = touched[x]
            blame[x] = 0.0
            if start[at[v] + one] - start[at[v]] > 1:
                messages = _behind(paths, work, scratch, j, size, q, v, tree) if phased else 0
                blame[x] = _blame(paths, scratch, v, root, messages, size, most, template, tree)[0]
        while True:
            x = 0
            for y in range(1, tried):
                if blame[y] > blame[x]:
                    x = y
            if blame[x] == 0:
                break
            blame[x] = 0.0
            v = touched[x]
            amount = flow[v]
            if amount == 0:
                continue
            messages = _behind(paths, work, scratch, j, size, q, v, tree) if phased else 0
            reach = _blame(paths, scratch, v, root, messages, size, most, template, tree)[1]
            reach = min(reach, farthest)
            if reach == STAY:
                continue
            mine = messages * work.unit[j]
            parts = row, v, amount, messages, size, most, theta, phased, template, tree
            _carry(paths, scratch, v, root, amount, messages, size, mine, tree, -1)
            present = _cheapest(paths, scratch, *parts, STAY)
            price = _cheapest(paths, scratch, *parts, min(reach, NEXT))
            if reach == ANY and price > COOL:
                price = _cheapest(paths, scratch, *parts, ANY)
            if price < present - EPSILON:
                moves += 1
                count = _take(paths, scratch, v, root, count, tree)
            _carry(paths, scratch, v, root, amount, messages, size, mine, tree, 1)
        _drop_untouched(scratch, count, template, tree)
    for x in range(count):
        flow[touched[x]] = 0
    return moves


@kernel_part
def _take(
    paths: Paths, scratch: Scratch, v: int, root: int, count: int, tree: U8
) -> int:  # pragma: no cover
    """Writes the path that `pick` has from `v` into the tree; returns how many switches are
    touched then."""
    target, port, pick = paths.graph.target, paths.graph.port, scratch.pick
    w = v
    while w != root:
        tree[w] = port[pick[w]]
        known = scratch.flow[w] > 0
        for y in range(count):
            known |= scratch.touched[y] == w
        if not known:
            scratch.touched[count] = w
            count += 1
        w = target[pick[w]]
    return count


@kernel_part
def _drop_untouched(scratch: Scratch, count: int, template: U8, tree: U8) -> None:  # pragma: no cover
    """Entries that carry nothing any more are no exceptions."""
    for x in range(count):
        w = scratch.touched[x]
        if scratch.flow[w] == 0:
            tree[w] = template[w]


@kernel_part
def _blame(
    paths: Paths,
    scratch: Scratch,
    v: int,
    root: int,
    messages: int,
    size: int,
    most: float,
    template: U8,
    tree: U8,
) -> tuple[float, int]:  # pragma: no cover
    """How much is wrong with the path from `v`, and how far to look for a better one."""
    target, by_port, width, load = paths.graph.target, paths.by_port, paths.width, paths.load
    row, meets, phase, flow = scratch.row, scratch.meets, scratch.phase, scratch.flow
    wrong, reach = 0.0, STAY
    w = v
    while w != root:
        c = by_port[w, tree[w]]
        if tree[w] != template[w] and flow[w] == flow[v]:
            wrong += EPSILON
            reach = max(reach, BACK)
        over = load[c] - most
        if over > EPSILON:
            wrong += HOT * over
            reach = ANY
        if messages:
            base = np.int64(row[c]) * size
            for k in range(messages):
                y = meets[base + phase[k]]
                if y > 1 and y > width[c]:
                    wrong += y / width[c] - 1.0
                    reach = max(reach, NEXT)
        w = target[c]
    return wrong, reach


@kernel_part
def _cheapest(
    paths: Paths,
    scratch: Scratch,
    row: int,
    v: int,
    amount: int,
    messages: int,
    size: int,
    most: float,
    theta: float,
    phased: bool,
    template: U8,
    tree: U8,
    reach: int,
) -> float:  # pragma: no cover
    """The least price of a path from `v`, whose traffic is taken off, to the root; `pick` has its
    channels."""
    target, port, by_port = paths.graph.target, paths.graph.port, paths.by_port
    start, edge = paths.cache.start[row], paths.cache.edge[row]
    share, width, load = paths.share, paths.width, paths.load
    units = paths.units
    needed, flow, cost, at = scratch.needed, scratch.flow, scratch.cost, scratch.at
    queue, pick, row_of, own = scratch.queue, scratch.pick, scratch.row, scratch.own
    meets, phase = scratch.meets, scratch.phase
    one = np.uint32(1)
    root = paths.cache.order[row, 0]
    queue[0] = v
    needed[v] = True
    found, done = one, np.uint32(0)
    while done < found:  # hop by hop, as every channel leads one hop closer
        w = queue[done]
        done += one
        if w == root:
            continue
        first, last = start[at[w]], start[at[w] + one]
        only = _only(flow, v, w, reach, template, tree)
        if only >= 0:
            first, last = np.uint32(0), one
        for e in range(first, last):
            u = target[by_port[w, only] if only >= 0 else edge[e]]
            if not needed[u]:
                needed[u] = True
                queue[found] = u
                found += one
    cost[root] = 0.0
    while found:
        found -= one
        w = queue[found]
        needed[w] = False
        if w == root:
            continue
        first, last = start[at[w]], start[at[w] + one]
        only = _only(flow, v, w, reach, template, tree)
        if only >= 0:
            first, last = np.uint32(0), one
        fixed = w != v and flow[w] > 0
        least = np.inf
        for e in range(first, last):
            c = by_port[w, only] if only >= 0 else edge[e]
            price = cost[target[c]]
            if price >= least:
                continue
            more, over = load[c] + amount * share[c] - most, max(0.0, load[c] - most)
            if more > 0:
                price += HOT * (more * more - over * over)
            if phased:
                if row_of[c] >= 0:
                    base = np.int64(row_of[c]) * size
                    for k in range(messages):
                        y = meets[base + phase[k]] + 1
                        if y > width[c]:
                            price += y / width[c] - 1.0
                elif width[c] < 1.0:
                    price += messages * (1.0 / width[c] - 1.0)
                price += messages * (units[c] - own[c]) * share[c]
            else:
                price += amount * share[c] * load[c]
            if not fixed and port[c] != template[w]:
                price += theta
            if price < least:
                least = price
                pick[w] = c
        cost[w] = least
    return float(cost[v])


@kernel_part
def _only(flow: I64, v: int, w: int, reach: int, template: U8, tree: U8) -> int:  # pragma: no cover
    """The only port that traffic from `v` may take at `w`; -1: any."""
    if reach == STAY or (w != v and flow[w] > 0):
        return np.int64(tree[w])
    if reach == BACK or (reach == NEXT and w != v):
        return np.int64(template[w])
    return np.int64(-1)


@kernel_part
def gather(
    paths: Paths, work: DemandItems, scratch: Scratch, d: int, tree: U8
) -> int:  # pragma: no cover
    """Sets the flow of the tree; returns how many switches are touched."""
    target, by_port, flow, leaf = paths.graph.target, paths.by_port, scratch.flow, work.leaf
    root, count = work.root[d], 0
    for k in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[k]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break
                if flow[v] == 0:
                    scratch.touched[count] = v
                    count += 1
                flow[v] += work.item[i]
                v = target[c]
    return count


@kernel_part
def _forget(scratch: Scratch, count: int) -> None:  # pragma: no cover
    for x in range(count):
        scratch.flow[scratch.touched[x]] = 0


@kernel
def drop_unused(
    paths: Paths, work: DemandItems, scratch: Scratch, template: U8, egress: U8
) -> Bool:  # pragma: no cover
    """Makes entries that no job uses those of the template; returns bool[T], the terminals to which
    others differ."""
    terminals, switches = len(work.root), egress.shape[1]
    excepted = np.zeros(terminals, np.bool_)
    for d in range(np.uint32(terminals)):
        differs = False
        for v in range(switches):
            differs |= egress[d, v] != template[d, v]
        if not differs:
            continue
        count = gather(paths, work, scratch, d, egress[d])
        for v in range(switches):
            if egress[d, v] != template[d, v]:
                if scratch.flow[v] == 0:
                    egress[d, v] = template[d, v]
                else:
                    excepted[d] = True
        _forget(scratch, count)
    return excepted


@kernel
def could_go_back(
    paths: Paths, work: DemandItems, freed: Bool, excepted: Bool, template: U8, egress: U8
) -> Bool:  # pragma: no cover
    """bool[J]: jobs with an exception of which the template's path leads over a channel `freed`
    bool[C] of some load."""
    target, by_port = paths.graph.target, paths.by_port
    jobs = np.zeros(len(work.unit), np.bool_)
    for d in range(np.uint32(len(excepted))):
        if not excepted[d]:
            continue
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
                jobs[work.on_job[k]] = True
    return jobs
