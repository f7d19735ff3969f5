"""Proves and counts a tree of which few entries changed, from those entries alone.

This is the usual case after a failure, where most trees lose one branch. The rest of the tree is
not examined:

- *The tree reaches.* The old tree had no circle, so a circle in the new tree passes a changed
  entry: following the new tree from each changed entry is enough.
- *Its dependencies.* A switch's dependency changes only if its entry changed, if the entry of the
  switch to which it forwards changed, or if packets begin or cease to pass; in that last case the
  switch lies downstream of a changed entry in the old or the new tree. Packets pass a switch if any
  switch upstream has hosts. (This holds in one lane, where all paths are alike.) Where all packets
  pass in both trees, they do so all the way down to the next changed entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.check.counted_trees import Counts
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U8, U32
from sar_agent.util.kernels import kernel_part


class ChangeScratch(NamedTuple):
    """Scratch arrays for one tree at a time, each with a place per switch."""

    near: U32
    """Switches whose dependencies may have changed."""
    seen: U32
    """The number + 1 of the tree for which each switch was put into `near` last."""
    stack: U32


@kernel_part
def change_scratch_of(wiring: Wiring) -> ChangeScratch:  # pragma: no cover
    """Scratch for this wiring."""
    size = wiring.sends.shape[1]
    return ChangeScratch(
        np.empty(size, np.uint32), np.zeros(size, np.uint32), np.empty(size, np.uint32)
    )


@kernel_part
def amend_tree(
    wirings: tuple[Wiring, Wiring],
    rows: tuple[U8, U8],
    d: int,
    changed: U32,
    counts: Counts,
    scratch: ChangeScratch,
) -> bool:  # pragma: no cover
    """Replaces the old tree of destination `d` by the new one in `counts`; False where a switch
    does not reach it (the counts are then useless).

    `wirings` and `rows` (uint8[S]) are old and new; `changed` uint32[·] are the switches of which
    the entry, the switch behind its port, or the paths that begin there differ.
    """
    new = wirings[1]
    switches = np.uint32(new.sends.shape[1])
    root = np.uint32(new.root[d])
    if rows[1][root] != new.last[d]:
        return False
    for v in changed:
        w, hops = v, 0
        while w != root and w < switches and hops <= switches:
            w, hops = _next(new, rows[1], w), hops + 1
        # A switch that is down leads to index `switches` + 1, which is allowed.
        if w != root and not (w == switches + 1 and hops == 1):
            return False
    size = np.uint32(0)
    kind = new.destination_kind[d] - np.uint8(1)
    all_old, all_new = wirings[0].most[kind], new.most[kind]
    for v in changed:
        for which in range(2):
            w = v
            while w != root and w < switches:
                if scratch.seen[w] != d + 1:
                    size = _put(scratch, d, size, w)
                    passed = _passing(wirings[0], rows[0], d, w, scratch.stack)
                    passing = _passing(new, rows[1], d, w, scratch.stack)
                    _count(wirings[0], rows[0], w, passed, -1, counts)
                    _count(new, rows[1], w, passing, 1, counts)
                    if w != v and passed == passing == all_old == all_new:
                        break
                w = _next(wirings[which], rows[which], w)
    downstream = size
    for v in changed:
        for which in range(2):
            wiring, row = wirings[which], rows[which]
            for e in range(wiring.into_offset[v], wiring.into_offset[v + np.uint32(1)]):
                if row[wiring.into_switch[e]] == wiring.into_port[e]:
                    size = _put(scratch, d, size, np.uint32(wiring.into_switch[e]))
    for i in range(downstream, size):
        v = scratch.near[i]
        passing = _passing(new, rows[1], d, v, scratch.stack)  # as in the old tree
        _count(wirings[0], rows[0], v, passing, -1, counts)
        _count(new, rows[1], v, passing, 1, counts)
    return True


@kernel_part
def _next(wiring: Wiring, row: U8, v: np.uint32) -> np.uint32:  # pragma: no cover
    port = np.uint32(row[v])
    column = port if port < wiring.ports else wiring.ports
    return np.uint32(wiring.next[v * (wiring.ports + np.uint32(1)) + column])


@kernel_part
def _put(
    scratch: ChangeScratch, d: int, size: np.uint32, v: np.uint32
) -> np.uint32:  # pragma: no cover
    """Adds v to the switches near a change, once; returns their number."""
    if scratch.seen[v] == d + 1:
        return size
    scratch.seen[v] = d + 1
    scratch.near[size] = v
    return np.uint32(size + 1)


@kernel_part
def _count(
    wiring: Wiring, row: U8, v: np.uint32, passing: np.uint32, step: int, counts: Counts
) -> None:  # pragma: no cover
    """Adds `step` to v's dependency for the marks of the packets that pass v."""
    w = _next(wiring, row, v)
    if w >= wiring.sends.shape[1]:
        return
    dependency = (v * wiring.ports + row[v]) * wiring.ports + row[w]
    for plane in range(np.uint32(2)):
        if passing >> plane & np.uint32(1):
            counts[plane, dependency] += step


@kernel_part
def _passing(
    wiring: Wiring, row: U8, d: int, v: np.uint32, stack: U32
) -> np.uint32:  # pragma: no cover
    """The marks of all paths to `d` that pass v: those of v and of the switches upstream."""
    kind = wiring.destination_kind[d] - np.uint8(1)
    sends, most = wiring.sends[kind], wiring.most[kind]
    marks = np.uint32(sends[v])
    stack[0] = v
    depth = np.uint32(1)
    while depth:
        depth = np.uint32(depth - 1)
        u = stack[depth]
        for e in range(wiring.into_offset[u], wiring.into_offset[u + np.uint32(1)]):
            if marks == most:
                return marks
            w = wiring.into_switch[e]
            if row[w] == wiring.into_port[e]:
                marks |= sends[w]
                stack[depth] = w
                depth = np.uint32(depth + 1)
    return marks
