"""Finds where new tables differ from proved ones, and proves and counts only these trees.

A tree that was rebuilt is removed from the counts and added again as a whole (`counted_trees.py`);
a tree with a few changed entries is amended (`changed_tree.py`).
"""

from __future__ import annotations

import numpy as np

from sar_agent.check.changed_tree import amend_tree, change_scratch_of
from sar_agent.check.counted_trees import Counts, add_tree, scratch_of
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.util.kernels import kernel, kernel_part

FEW = 24
"""Changed entries up to which amending is faster than counting both trees, at 1,620 switches."""


@kernel
def changed_entries(
    wiring: Wiring, moved: U32, rows: tuple[U8, U8], levels: tuple[U8, U8]
) -> I32:  # pragma: no cover
    """int32[D]: the number of live switches at which the old and the new tree, `rows` uint8[D, S],
    differ in the entry, in the service level, or in the switch that the entry's port leads to
    (`moved`, uint32[·, 2])."""
    before, after = rows
    destinations, switches = after.shape
    column = wiring.ports + np.uint32(1)
    asked = np.empty(switches, np.uint8)
    for s in range(np.uint32(switches)):
        asked[s] = 0 if wiring.next[s * column] == switches + 1 else 255
    changed = np.zeros(destinations, np.int32)
    for d in range(destinations):
        old, new = before[d], after[d]
        differs = np.uint8(0)
        for s in range(switches):  # in vectors of 64
            differs |= (old[s] ^ new[s]) & asked[s]
        if differs:
            for s in range(switches):
                changed[d] += old[s] != new[s] and asked[s] > 0
        for s in range(levels[1].shape[1]):
            changed[d] += levels[0][d, s] != levels[1][d, s]
        for i in range(len(moved)):
            s = moved[i, 0]
            changed[d] += old[s] == new[s] == moved[i, 1] and asked[s] > 0
    return changed


@kernel
def change_trees(
    wirings: tuple[Wiring, Wiring],
    moved: U32,
    touched: U32,
    rows: tuple[U8, U8],
    levels: tuple[U8, U8],
    changed: I32,
    few: int,
    trees: I64,
    counts: Counts,
) -> bool:  # pragma: no cover
    """Removes the old `trees` (destinations) from `counts` and adds the new ones; False as soon as
    a tree does not reach. `touched` switches (`Wiring.moved`) count as changed in every tree; a
    tree of up to `few` changes is amended."""
    before, after = wirings
    scratch, change_scratch = scratch_of(after), change_scratch_of(after)
    for d in trees:
        old_kind, kind = before.destination_kind[d], after.destination_kind[d]
        if old_kind == kind == 0:
            continue
        if old_kind == kind and after.lanes == 1 and changed[d] + len(touched) <= few:
            pair = (rows[0][d], rows[1][d])
            entries = _entries(after, moved, touched, pair, changed[d])
            if not amend_tree(wirings, pair, d, entries, counts, change_scratch):
                return False
            continue
        if old_kind:
            add_tree(before, rows[0][d], levels[0][d], d, -1, counts, scratch)
        if kind and not add_tree(after, rows[1][d], levels[1][d], d, 1, counts, scratch):
            return False
    return True


@kernel_part
def _entries(
    wiring: Wiring, moved: U32, touched: U32, rows: tuple[U8, U8], changed: int
) -> U32:  # pragma: no cover
    """uint32[·]: the switches that `changed_entries` counted in one tree, and those `touched`."""
    old, new = rows
    switches = np.uint32(len(new))
    column = wiring.ports + np.uint32(1)
    entries = np.empty(changed + len(touched), np.uint32)
    entries[: len(touched)] = touched
    size = len(touched)
    if not changed:
        return entries
    for s in range(switches):
        if old[s] != new[s] and wiring.next[s * column] != switches + np.uint32(1):
            entries[size] = s
            size += 1
    for i in range(len(moved)):
        s = moved[i, 0]
        if old[s] == new[s] == moved[i, 1] and wiring.next[s * column] != switches + 1:
            entries[size] = s
            size += 1
    return entries
