"""Grows the trees of jobs' destinations one source leaf at a time, at the price of the moment.

DFSSSP and SAR let all sources of a destination choose by the same weights, so they herd onto the
cheapest links and the weights learn of it only when the tree is done. Here a channel's price rises
at once with everything placed on it: for a destination, the job's source leaves choose one after
another among minimal-hop paths, bound by what earlier ones fixed (a table has one next hop per
destination). The price of a channel is steep in its load, (load + half an item)^5: the marginal
cost of the sum of sixth powers, which stands in for the largest load.

*Lazy lower bounds* make a search cost little more than reading its result. One pass over the
minimal-hop DAG in hop order gives each switch the least cost to the destination. While one tree
grows, prices on it only rise, so these costs stay lower bounds: follow them, add up what the path
truly costs, and where the sum is no more than the bound it is the optimum; otherwise only the
switches on that path are looked at again. Most of what rises is the last hop before the leaf, so
where all of a switch's paths enter the leaf from one neighbour (in every tree), that neighbour's
rise is added when the bound is read, and the first guess is nearly always right (1.0 to 1.3
tries a source on trees, instead of 9 to 18 without).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import F32, U8, Bool
from sar_agent.routing.dag import U32, DagCache, Graph, dag_row

I64 = NDArray[np.int64]

SLACK = np.float32(1.001)
"""A path this near its lower bound is taken: searching on would move loads by less than that."""
TRIES = 64
"""Then the path at hand is taken, proved cheapest or not."""
LIGHTER = 4
"""Items lighter than what is placed count 1 / 2**LIGHTER: they can be moved out of the way."""


AGAIN = -1
"""Instead of a weight class, in `place_trees`."""


class Work(NamedTuple):
    """What is to be placed: for each terminal its jobs, for each job its leaves with sources."""

    root: U32
    """uint32[T], leaf switch of each terminal."""
    last_port: U8
    """uint8[T]"""
    on_offset: U32
    """uint32[T + 1] into `on_job`"""
    on_job: U32
    leaf_offset: U32
    """uint32[J + 1] into `leaf` and `item`; a job's leaves with most sources come first."""
    leaf: U32
    sources: I64
    """int64[·]: terminals of the job at that leaf."""
    item: I64
    """int64[·]: what the sources at that leaf send to each destination of the job, in units."""
    weight_class: U8
    """uint8[J]: 0 for the jobs with the heaviest routes, one more for each halving."""


class Loads(NamedTuple):
    """What is on each channel, in exact integer units so that nothing drifts as jobs come and go,
    and what it costs to add to it."""

    units: I64
    """int64[K, C], by weight class."""
    share: F32
    """float32[C]: one unit as a share of what the channel can carry."""
    counted: I64
    """int64[C]: the units that the prices are made of (`count_for_class`)."""
    price: F32
    """float32[C]"""
    half_item: np.float32
    first_use: np.float32
    """Extra price of every channel that is in use already: 0, except in `brighten`."""


class Scratch(NamedTuple):
    """Room for one tree, and per DAG row where its paths enter the root."""

    entry: U32
    """uint32[rows, S]: the last switch before the root on all minimal-hop paths, S: several."""
    entry_of: NDArray[np.int32]
    """int32[rows]: the root that `entry` was found for."""
    cost: F32
    rise: F32
    """float32[S + 1]: how much the last hop from an entry has risen since the first pass."""
    via: U32
    at: U32
    """Each switch's place in the DAG row."""
    needed: Bool
    fixed: Bool
    path: U32
    taken: U32
    lead: U8
    """uint8[S]: class of the heaviest of the tree's jobs with sources at each leaf."""
    now: Bool
    """bool[S]: the leaves whose path is to be found, ..."""
    waiting: I64
    """int64[S, K]: ... and what waits for it there, by weight class."""


def scratch_for(cache: DagCache, switches: int, classes: int) -> Scratch:
    """Clean scratch arrays."""
    rows = len(cache.tag)
    return Scratch(
        entry=np.empty((rows, switches), np.uint32),
        entry_of=np.full(rows, -1, np.int32),
        cost=np.zeros(switches, np.float32),
        rise=np.zeros(switches + 1, np.float32),
        via=np.zeros(switches, np.uint32),
        at=np.zeros(switches, np.uint32),
        needed=np.zeros(switches, np.bool_),
        fixed=np.zeros(switches, np.bool_),
        path=np.zeros(switches, np.uint32),
        taken=np.zeros(switches, np.uint32),
        lead=np.zeros(switches, np.uint8),
        now=np.zeros(switches, np.bool_),
        waiting=np.zeros((switches, classes), np.int64),
    )


@njit(cache=True)
def price_of(loads: Loads, channel: int) -> np.float32:  # pragma: no cover
    """What one more item costs on a channel with so much on it."""
    units = loads.counted[channel]
    x = np.float32(units) * loads.share[channel] + loads.half_item
    square = x * x
    price: np.float32 = square * square * x
    return price + loads.first_use if units else price


@njit(cache=True)
def count_for_class(loads: Loads, weight_class: int) -> None:  # pragma: no cover
    """Prices as items of this class see them: all that is as heavy or heavier, little of what is
    lighter. Without that, a heavy item that comes late finds every channel equally full."""
    classes, channels = loads.units.shape
    for c in range(channels):
        heavy = np.int64(0)
        light = np.int64(0)
        for k in range(classes):
            if k <= weight_class:
                heavy += loads.units[k, c]
            else:
                light += loads.units[k, c]
        loads.counted[c] = heavy + (light >> LIGHTER)
        loads.price[c] = price_of(loads, c)


@njit(cache=True)
def _add(loads: Loads, weight_class: int, channel: int, units: int) -> None:  # pragma: no cover
    loads.units[weight_class, channel] += units
    loads.counted[channel] += units
    loads.price[channel] = price_of(loads, channel)


@njit(cache=True)
def carry_tree(
    graph: Graph, by_port: U32, work: Work, loads: Loads, egress: U8, d: int, sign: int
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or takes off (-1) what `d`'s tree carries, as its row of `egress` stands.

    A path that ends early (no route, a dead cable still counts) is added as far as it goes.
    """
    root = work.root[d]
    tree = egress[d]
    channels = len(graph.target)
    for q in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            hops = 0
            while v != root and hops < len(tree):
                c = by_port[v, tree[v]]
                if c >= channels:
                    break
                _add(loads, work.weight_class[job], c, sign * work.item[i])
                v = graph.target[c]
                hops += 1


@njit(cache=True)
def carry_trees(
    graph: Graph, by_port: U32, work: Work, loads: Loads, egress: U8, dests: U32, sign: int
) -> None:  # pragma: no cover
    """`carry_tree` for each of `dests`."""
    for d in dests:
        carry_tree(graph, by_port, work, loads, egress, d, sign)


class Moved(NamedTuple):
    """Which sources of some trees are placed; the others keep their paths. Empty: all are."""

    offset: U32
    """uint32[trees + 1] into `source`"""
    source: Bool
    """bool[·]: the sources of each tree, in the order of its jobs' leaves."""


def all_moved() -> Moved:
    """Whole trees."""
    return Moved(np.empty(0, np.uint32), np.empty(0, np.bool_))


@njit(cache=True)
def lift_hot(
    graph: Graph, by_port: U32, work: Work, loads: Loads, egress: U8, dests: U32, hot: Bool
) -> Moved:  # pragma: no cover
    """Takes off what comes from sources whose paths cross a channel of `hot` bool[C].

    Who shares a hop with them also shares the hot channel behind it, so the rest of a tree is
    still a tree.
    """
    offset = np.zeros(len(dests) + 1, np.uint32)
    for n in range(len(dests)):
        d = dests[n]
        offset[n + 1] = offset[n]
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            offset[n + 1] += work.leaf_offset[job + 1] - work.leaf_offset[job]
    source = np.zeros(offset[-1], np.bool_)
    for n in range(len(dests)):
        d = dests[n]
        root, tree = work.root[d], egress[d]
        k = offset[n]
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                v = work.leaf[i]
                while v != root:
                    c = by_port[v, tree[v]]
                    source[k] |= hot[c]
                    v = graph.target[c]
                if source[k]:
                    v = work.leaf[i]
                    while v != root:
                        c = by_port[v, tree[v]]
                        _add(loads, work.weight_class[job], c, -work.item[i])
                        v = graph.target[c]
                k += np.uint32(1)
    return Moved(offset, source)


@njit(cache=True)
def place_trees(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: Work,
    loads: Loads,
    scratch: Scratch,
    dests: U32,
    moved: Moved,
    turn: int,
    egress: U8,
) -> None:  # pragma: no cover
    """Grows the tree of each of `dests` in turn and writes its job paths into `egress` uint8[D, S];
    other entries stay.

    `turn` is a weight class: the paths that are placed are those of leaves whose heaviest job is of
    that class. Those of heavier ones stand already, those of lighter ones come later. `AGAIN`: all
    old paths are in the loads, are taken off first, and all are placed."""
    whole = len(moved.offset) == 0
    again = turn == AGAIN
    for n in range(len(dests)):
        d = dests[n]
        root = work.root[d]
        row = dag_row(graph, cache, root)
        if scratch.entry_of[row] != root:
            _find_entries(graph, cache, row, scratch)
        if again:
            carry_tree(graph, by_port, work, loads, egress, d, -1)
        first = np.uint32(0) if whole else moved.offset[n]
        if not _gather(work, scratch, d, first, moved, turn):
            continue
        _fix(graph, by_port, work, scratch, d, first, moved, turn, egress[d])
        _first_pass(graph, cache, row, loads, scratch)
        for q in range(work.on_offset[d + 1], work.on_offset[d], -1):
            job = work.on_job[q - 1]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                source = work.leaf[i]
                if not scratch.now[source]:
                    continue
                # A leaf that is cut off has nothing to choose; the check will name it.
                if scratch.cost[source] < np.inf:
                    _place(graph, cache, row, loads, scratch, source)
                scratch.now[source] = False
                scratch.waiting[source] = 0
        tree, order = egress[d], cache.order[row]
        for i in range(cache.size[row]):
            v = order[i]
            if scratch.fixed[v]:
                tree[v] = graph.port[scratch.via[v]]
                scratch.fixed[v] = False
            scratch.needed[v] = False
        tree[root] = work.last_port[d]


@njit(cache=True)
def _gather(
    work: Work, scratch: Scratch, d: int, first: np.uint32, moved: Moved, turn: int
) -> bool:  # pragma: no cover
    """Marks the leaves that need a path now, and adds up what waits there; whether there are any.

    All that a leaf sends to a destination takes one path, whatever the jobs. So it is placed at
    once, in the turn of the heaviest: had the lighter ones to follow later, blindly, they would
    upset what was balanced without them.
    """
    root = work.root[d]
    whole = len(moved.offset) == 0
    begin, end = work.on_offset[d], work.on_offset[d + 1]
    for q in range(begin, end):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            scratch.lead[work.leaf[i]] = work.weight_class[job]
    if end - begin > 1:
        for q in range(begin, end):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                v = work.leaf[i]
                scratch.lead[v] = min(scratch.lead[v], work.weight_class[job])
    found = False
    k = first
    for q in range(begin, end):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            free = v != root and (whole or moved.source[k])
            if free and (turn == AGAIN or scratch.lead[v] == turn):
                scratch.waiting[v, work.weight_class[job]] += work.item[i]
                scratch.now[v] = True
                scratch.needed[v] = True
                scratch.cost[v] = np.inf
                found = True
            k += np.uint32(1)
    return found


@njit(cache=True)
def _fix(
    graph: Graph,
    by_port: U32,
    work: Work,
    scratch: Scratch,
    d: int,
    first: np.uint32,
    moved: Moved,
    turn: int,
    tree: U8,
) -> None:  # pragma: no cover
    """Fixes the paths of the other leaves that have one: those not moved, and those of turns before
    this one."""
    root = work.root[d]
    whole = len(moved.offset) == 0
    if whole and (turn == AGAIN or work.on_offset[d + 1] - work.on_offset[d] == 1):
        return
    k = first
    for q in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            free = whole or moved.source[k]
            k += np.uint32(1)
            if scratch.now[v] or (free and scratch.lead[v] > turn):
                continue
            while v != root and not scratch.fixed[v]:
                c = by_port[v, tree[v]]
                if c >= len(graph.target):
                    break
                scratch.fixed[v] = True
                scratch.via[v] = c
                v = graph.target[c]


@njit(cache=True)
def _find_entries(
    graph: Graph, cache: DagCache, row: np.uint32, scratch: Scratch
) -> None:  # pragma: no cover
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    entry = scratch.entry[row]
    root = order[0]
    several = np.uint32(len(entry))
    entry[:] = several
    for i in range(1, cache.size[row]):
        v = order[i]
        first = graph.target[edge[start[i]]]
        if first == root:
            entry[v] = v
            continue
        found = entry[first]
        for e in range(start[i] + 1, start[i + 1]):
            if entry[graph.target[edge[e]]] != found:
                found = several
        entry[v] = found
    scratch.entry_of[row] = root


@njit(cache=True)
def _first_pass(
    graph: Graph, cache: DagCache, row: np.uint32, loads: Loads, scratch: Scratch
) -> None:  # pragma: no cover
    """Least costs in hop order, of all switches that the paths of marked leaves may use."""
    order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
    cost, via, needed, fixed = scratch.cost, scratch.via, scratch.needed, scratch.fixed
    target, price = graph.target, loads.price
    root = order[0]
    for i in range(cache.size[row] - 1, 0, -1):
        v = order[i]
        if needed[v]:
            if fixed[v]:
                needed[target[via[v]]] = True
                continue
            for e in range(start[i], start[i + 1]):
                needed[target[edge[e]]] = True
    scratch.rise[:] = 0
    cost[root] = 0
    for i in range(1, cache.size[row]):
        v = order[i]
        if not needed[v]:
            continue
        scratch.at[v] = i
        if fixed[v]:
            cost[v] = price[via[v]] + cost[target[via[v]]]
            continue
        best_channel = edge[start[i]]
        best = price[best_channel] + cost[target[best_channel]]
        for e in range(start[i] + 1, start[i + 1]):
            c = edge[e]
            bid = price[c] + cost[target[c]]
            if bid < best:
                best = bid
                best_channel = c
        cost[v] = best
        via[v] = best_channel


@njit(cache=True)
def _look_again(
    graph: Graph, cache: DagCache, row: np.uint32, loads: Loads, scratch: Scratch, v: int
) -> None:  # pragma: no cover
    """`v`'s least cost and channel by the bounds and rises of now."""
    start, edge, entry = cache.start[row], cache.edge[row], scratch.entry[row]
    at = scratch.at[v]
    best = np.float32(np.inf)
    best_channel = scratch.via[v]
    for e in range(start[at], start[at + 1]):
        c = edge[e]
        w = graph.target[c]
        bid = loads.price[c] + scratch.cost[w] + scratch.rise[entry[w]]
        if bid < best:
            best = bid
            best_channel = c
    scratch.cost[v] = best - scratch.rise[entry[v]]
    scratch.via[v] = best_channel


@njit(cache=True)
def _place(
    graph: Graph,
    cache: DagCache,
    row: np.uint32,
    loads: Loads,
    scratch: Scratch,
    source: int,
) -> None:  # pragma: no cover
    """Finds `source`'s cheapest path among what is still free, fixes it, puts on it what waits."""
    target, price = graph.target, loads.price
    cost, rise, via, fixed = scratch.cost, scratch.rise, scratch.via, scratch.fixed
    entry, path, taken = scratch.entry[row], scratch.path, scratch.taken
    root = cache.order[row, 0]
    if not fixed[source]:
        _look_again(graph, cache, row, loads, scratch, source)
    length = 0
    for _ in range(TRIES):
        length = 0
        v = source
        while v != root:
            path[length] = v
            taken[length] = via[v]
            length += 1
            v = target[via[v]]
        true = np.float32(0)
        for k in range(length - 1, -1, -1):
            v = path[k]
            true += price[taken[k]]
            if not fixed[v]:
                _look_again(graph, cache, row, loads, scratch, v)
            elif entry[v] != v:
                cost[v] = true - rise[entry[v]]
        if fixed[source] or true <= SLACK * (cost[source] + rise[entry[source]]):
            break
    true = np.float32(0)
    waiting = scratch.waiting[source]
    for n in range(length - 1, -1, -1):
        v, c = path[n], taken[n]
        for k in range(loads.units.shape[0]):
            if waiting[k]:
                _add(loads, k, c, waiting[k])
        fixed[v] = True
        via[v] = c
        true += price[c]
        if entry[v] == v:
            rise[v] = true - cost[v]
        else:
            cost[v] = true - rise[entry[v]]


@njit(cache=True)
def trees_over(
    graph: Graph, by_port: U32, work: Work, egress: U8, dests: U32, hot: U32, source: U32
) -> Bool:  # pragma: no cover
    """bool[len(dests)]: which of `dests` have a job path over one of the channels `hot`, which
    leave the switches `source`."""
    found = np.zeros(len(dests), np.bool_)
    is_hot = np.zeros(len(graph.target) + 1, np.bool_)
    is_hot[hot] = True
    channels = len(graph.target)
    for n in range(len(dests)):
        d = dests[n]
        tree, root = egress[d], work.root[d]
        # Few rows have a hot channel at all: that is one read a channel, before any walk.
        maybe = False
        for h in range(len(hot)):
            v = source[h]
            if tree[v] == graph.port[hot[h]] and v != root:
                maybe = True
                break
        if not maybe:
            continue
        for q in range(work.on_offset[d], work.on_offset[d + 1]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
                v = work.leaf[i]
                hops = 0
                while v != root and hops < len(tree):
                    c = by_port[v, tree[v]]
                    if c >= channels:
                        break
                    found[n] |= is_hot[c]
                    v = graph.target[c]
                    hops += 1
    return found
