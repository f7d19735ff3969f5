"""Which leaves of a tree need a path in this turn, and which paths are fixed already.

All traffic from a leaf to a destination takes one path, whatever its jobs, because a table has one
port for that destination. So all of it is placed at once, in the turn of the heaviest of these
jobs: if lighter ones were placed later, they would have to follow and upset a balance made without
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F32, I32, I64, U8, U32, Bool
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.util.kernels import kernel_part

AGAIN = -1
"""The value of `turn` in `place_trees` for "all classes, after taking the old paths off"."""


class PathScratch(NamedTuple):
    """Scratch for one tree at a time; per DAG row, where its paths enter the root."""

    entry: U32
    """uint32[rows, S]: the last switch before the root on all shortest paths; S: there are
    several."""
    entry_of: I32
    """int32[rows]: the root that `entry` was found for."""
    cost: F32
    rise: F32
    """float32[S + 1]: how much the price of an entry's last hop rose since the first pass."""
    via: U32
    at: U32
    """Each switch's place in the DAG row."""
    needed: Bool
    fixed: Bool
    path: U32
    taken: U32
    lead: U8
    """uint8[S]: class of the heaviest of the tree's jobs that sends from each leaf."""
    now: Bool
    """bool[S]: the leaves that need a path in this turn, ..."""
    waiting: I64
    """int64[S, K]: ... and the load that waits for it there, by weight class."""


def scratch_for(cache: DagCache, switches: int, classes: int) -> PathScratch:
    """Scratch that no tree has used."""
    rows = len(cache.tag)
    return PathScratch(
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


def other_scratch(scratch: PathScratch) -> PathScratch:
    """Scratch for a thread that asks for other DAG rows."""
    small = scratch._asdict()
    rows = {name: small.pop(name) for name in ("entry", "entry_of")}
    return PathScratch(**rows, **{name: np.zeros_like(array) for name, array in small.items()})


@kernel_part
def gather(
    work: DemandItems,
    scratch: PathScratch,
    d: int,
    moved: Bool,
    turn: int,
) -> bool:  # pragma: no cover
    """Marks the leaves that need a path in this turn and adds up their load; whether any does.

    `moved` bool[·]: which sources of the tree, in the order of its jobs' leaves, are placed; the
    others keep their paths. Empty: all are placed."""
    root = work.root[d]
    whole = len(moved) == 0
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
    any_leaf = False
    k = np.uint32(0)
    for q in range(begin, end):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            free = v != root and (whole or moved[k])
            if free and (turn == AGAIN or scratch.lead[v] == turn):
                scratch.waiting[v, work.weight_class[job]] += work.item[i]
                scratch.now[v] = True
                scratch.needed[v] = True
                scratch.cost[v] = np.inf
                any_leaf = True
            k += np.uint32(1)
    return any_leaf


@kernel_part
def fix_others(
    graph: Graph,
    by_port: U32,
    work: DemandItems,
    scratch: PathScratch,
    d: int,
    moved: Bool,
    turn: int,
    tree: U8,
) -> None:  # pragma: no cover
    """Fixes the paths of the other leaves that have one: those that are not moved, and those that
    earlier turns placed."""
    root = work.root[d]
    whole = len(moved) == 0
    if whole and (turn == AGAIN or work.on_offset[d + 1] - work.on_offset[d] == 1):
        return
    k = np.uint32(0)
    for q in range(work.on_offset[d], work.on_offset[d + 1]):
        job = work.on_job[q]
        for i in range(work.leaf_offset[job], work.leaf_offset[job + 1]):
            v = work.leaf[i]
            free = whole or moved[k]
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
