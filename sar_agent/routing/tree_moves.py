"""A move: all traffic behind a switch of one destination's tree is hung up elsewhere.

A move is mostly one table entry. A switch that carries other traffic of the tree keeps its entry;
others are free, so the cheapest path is found by a dynamic program over the tree's paths, hop by
hop. The price of a path is the sum over its channels of

    HOT times the growth of the square of the load above `most`
    + the growth of half the square of the load
    + `theta` for each entry that differs from the template.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F64, I64, U8, U32, Bool
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.shortest_path_dag import dag_row
from sar_agent.routing.job_loads import Paths
from sar_agent.util.kernels import kernel_part

HOT = 1e9
"""The price of load above `most`, in messages: it decides, and the rest breaks ties."""
COOL = 1e3
"""A path that costs less crosses no channel that is clearly above `most`."""
EPSILON = 1e-9
STAY, BACK, NEXT, ANY = np.arange(4)
"""Where traffic may go: the present path; the template's; another one of the first switch's
channels, then the template's; any. For plain numbers, numba would compile `cheapest` three
times."""
Number = int | np.integer
"""In kernels these are one."""


class Scratch(NamedTuple):
    """Scratch for one tree."""

    flow: I64
    """int64[S]: units that pass each switch on their way to the tree's root."""
    touched: U32
    """uint32[S]: the switches that any pass, or passed."""
    blame: F64
    """float64[S]: what is wrong with the path of each touched switch; 0: nothing."""
    at: U32
    """uint32[S]: each switch's place in the row of the cache."""
    needed: Bool
    queue: U32
    cost: F64
    pick: U32
    """uint32[S]: the channel of the cheapest path."""


def scratch_for(switches: int) -> Scratch:
    """Scratch for a fabric of so many switches."""
    return Scratch(
        flow=np.zeros(switches, np.int64),
        touched=np.zeros(switches, np.uint32),
        blame=np.zeros(switches, np.float64),
        at=np.zeros(switches, np.uint32),
        needed=np.zeros(switches, np.bool_),
        queue=np.zeros(switches, np.uint32),
        cost=np.zeros(switches, np.float64),
        pick=np.zeros(switches, np.uint32),
    )


class Move(NamedTuple):
    """What a move takes along, and its terms."""

    root: Number
    row: Number
    """The row of the cache that holds the paths to the root."""
    v: Number
    """The switch whose path moves."""
    amount: Number
    """Units behind it."""
    most: float
    theta: float


@kernel_part
def find_places(paths: Paths, scratch: Scratch, root: Number) -> np.uint32:  # pragma: no cover
    """The row of the root in the cache; sets the place of each switch in it."""
    row = dag_row(paths.graph, paths.cache, root)
    for i in range(paths.cache.size[row]):
        scratch.at[paths.cache.order[row, i]] = i
    return row


@kernel_part
def gather(
    paths: Paths, work: DemandItems, scratch: Scratch, d: Number, tree: U8
) -> int:  # pragma: no cover
    """Sets the flow of the tree; returns how many switches are touched."""
    target, by_port, flow, leaf = paths.graph.target, paths.by_port, scratch.flow, work.leaf
    root, count = work.root[d], 0
    for k in range(work.on_offset[d], work.on_offset[d + 1]):
        x = work.on_member[k]
        for i in range(work.first[x], work.past[x]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break  # a leaf that is cut off
                if flow[v] == 0:
                    scratch.touched[count] = v
                    count += 1
                flow[v] += work.item[i]
                v = target[c]
    return count


@kernel_part
def forget(scratch: Scratch, count: int, template: U8, tree: U8) -> None:  # pragma: no cover
    """Clears the flow. Entries that carry nothing any more are no exceptions."""
    for x in range(count):
        w = scratch.touched[x]
        if scratch.flow[w] == 0:
            tree[w] = template[w]
        scratch.flow[w] = 0


@kernel_part
def carry(
    paths: Paths, scratch: Scratch, move: Move, tree: U8, sign: Number
) -> None:  # pragma: no cover
    """Adds (`sign` 1) or removes (-1) the traffic of a move on its path in the tree."""
    target, by_port, share = paths.graph.target, paths.by_port, paths.share
    units, load, flow = paths.units, paths.load, scratch.flow
    w = move.v
    while w != move.root:
        if w != move.v:
            flow[w] += sign * move.amount
        c = by_port[w, tree[w]]
        w = target[c]
        units[c] += sign * move.amount
        load[c] = units[c] * share[c]


@kernel_part
def take(
    paths: Paths, scratch: Scratch, move: Move, count: int, tree: U8
) -> int:  # pragma: no cover
    """Writes the path that `pick` has into the tree; returns how many switches are touched then."""
    target, port, pick = paths.graph.target, paths.graph.port, scratch.pick
    w = move.v
    while w != move.root:
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
def cheapest(
    paths: Paths, scratch: Scratch, move: Move, template: U8, tree: U8, reach: Number
) -> float:  # pragma: no cover
    """The least price of a path for the move, whose traffic is taken off; `pick` has its
    channels."""
    target, port, by_port = paths.graph.target, paths.graph.port, paths.by_port
    start, edge = paths.cache.start[move.row], paths.cache.edge[move.row]
    share, load, most = paths.share, paths.load, move.most
    needed, flow, cost, at = scratch.needed, scratch.flow, scratch.cost, scratch.at
    queue, pick = scratch.queue, scratch.pick
    v, root, amount, one = move.v, move.root, move.amount, np.uint32(1)
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
        free = w == v or flow[w] == 0
        least = np.inf
        for e in range(first, last):
            c = by_port[w, only] if only >= 0 else edge[e]
            price = cost[target[c]]
            if price >= least:
                continue
            more = load[c] + amount * share[c]
            price += HOT * (_square(more - most) - _square(load[c] - most))
            price += amount * share[c] * load[c]
            if free and port[c] != template[w]:
                price += move.theta
            if price < least:
                least = price
                pick[w] = c
        cost[w] = least
    return float(cost[v])


@kernel_part
def _square(over: float) -> float:  # pragma: no cover
    return over * over if over > 0.0 else 0.0


@kernel_part
def _only(
    flow: I64, v: Number, w: Number, reach: Number, template: U8, tree: U8
) -> Number:  # pragma: no cover
    """The only port that traffic from `v` may take at `w`; -1: any."""
    if reach == STAY or (w != v and flow[w] > 0):
        return np.int64(tree[w])
    if reach == BACK or (reach == NEXT and w != v):
        return np.int64(template[w])
    return np.int64(-1)
