"""What differs between proved tables and new ones is found, and proved and counted in their place.

A tree that was grown anew is taken out of the counts and put in again as a whole (`trees.py`); one
of which a few entries changed is amended (`amend.py`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.check.changed_tree import amend_tree, change_scratch_of
from sar_agent.check.counted_trees import Counts, add_tree, scratch_of
from sar_agent.check.wiring import U32, Wiring
from sar_agent.fabric.model import I32, U8

FEW = 24
"""Changed entries up to which amending is faster than the whole tree twice, at 1,620 switches."""


@njit(cache=True)
def changed_entries(
    wiring: Wiring, moved: U32, rows: tuple[U8, U8], levels: tuple[U8, U8]
) -> I32:  # pragma: no cover
    """int32[D]: in how many switches that are up each old and new tree, `rows` uint8[D, S], differ,
    or their service levels, or what the entry's port leads to (`moved`, uint32[·, 2])."""
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


@njit(cache=True)
def change_trees(
    wirings: tuple[Wiring, Wiring],
    moved: U32,
    touched: U32,
    rows: tuple[U8, U8],
    levels: tuple[U8, U8],
    changed: I32,
    counts: Counts,
    few: int,
) -> bool:  # pragma: no cover
    """Takes the old trees that changed out of `counts`, and puts the new ones in; False as soon as
    one does not reach. `touched` switches (`Wiring.moved`) count as changed in every tree; a tree
    of up to `few` changes is amended."""
    before, after = wirings
    scratch, bench = scratch_of(after), change_scratch_of(after)
    for d in range(len(changed)):
        asked, asks = before.asks[d], after.asks[d]
        if asked == asks and (asks == 0 or changed[d] + len(touched) == 0):
            continue
        if asked == asks and after.lanes == 1 and changed[d] + len(touched) <= few:
            pair = (rows[0][d], rows[1][d])
            entries = _entries(after, moved, touched, pair, changed[d])
            if not amend_tree(wirings, pair, d, entries, counts, bench):
                return False
            continue
        if asked:
            add_tree(before, rows[0][d], levels[0][d], d, -1, counts, scratch)
        if asks and not add_tree(after, rows[1][d], levels[1][d], d, 1, counts, scratch):
            return False
    return True


@njit(cache=True)
def _entries(
    wiring: Wiring, moved: U32, touched: U32, rows: tuple[U8, U8], changed: int
) -> U32:  # pragma: no cover
    """uint32[·]: the switches that `changed_entries` counted in one tree, and those `touched`."""
    old, new = rows
    switches = np.uint32(len(new))
    column = wiring.ports + np.uint32(1)
    found = np.empty(changed + len(touched), np.uint32)
    found[: len(touched)] = touched
    size = len(touched)
    if not changed:
        return found
    for s in range(switches):
        if old[s] != new[s] and wiring.next[s * column] != switches + np.uint32(1):
            found[size] = s
            size += 1
    for i in range(len(moved)):
        s = moved[i, 0]
        if old[s] == new[s] == moved[i, 1] and wiring.next[s * column] != switches + 1:
            found[size] = s
            size += 1
    return found
