"""Searches intermediate tables between two tables that must not be mixed.

There are two methods, for two dangers.

*A tree that could lead packets in a circle, or lose them,* is moved from its destination outwards:
first the switches next to the destination get their new entries, then those one hop further away on
the new tree. A new entry then always points to a switch that has its new entry, so every packet
that follows one arrives. As many hops are moved in one stage as every mixture allows.

*A credit loop* needs several trees, so not all of them are moved at once. Each stage moves as many
trees as keep the union of all dependencies acyclic. They are found by halving: where all trees
together close a loop, each half is tried by itself. After the stage the dependencies of the old
entries are gone, which makes room for the next. Where no tree can move as a whole, single entries
move.

**Weak spot:** both are greedy. Stages that exist may not be found; the transition is then refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.table_sets import Pair, TableEntries, TableSets
from sar_agent.check.walk import FINE, Planes, trace
from sar_agent.fabric.model import U8, Bool

MOST_UNIONS, HOPELESS_UNIONS = 2000, 200
"""Unions that are searched for a loop: over all stages, and in a stage where each had a loop."""


def find_intermediate_tables(
    sets: TableSets, changed: Bool, outcome: U8, most: int
) -> tuple[list[TableEntries], int]:
    """(tables to install one after the other, at most `most`; the number of trees that do not have
    all of their new entries in the last of them). None where no tree can move, or where a tree that
    loses packets now could not be moved.

    `changed` bool[O, D] are the trees to move; `outcome` uint8[O, D] is what `TableSets.mix`
    returned for moving each at once.
    """
    broken = sets.dead(sets.old.egress, changed)
    now, tables, left = sets.old, list[TableEntries](), changed.copy()
    tries = MOST_UNIONS
    while left.any() and len(tables) < most:
        then = _next_tables(sets, now, left, outcome)
        union = sets.planes()
        sets.mix((now, now), np.ones_like(left), union)
        # Packets on a broken tree are lost until it moves, so broken trees move first.
        order = sorted(map(tuple, np.argwhere(left).tolist()), key=lambda at: not broken[at])
        moved, tries = _movable(sets, (now, then), order, union, tries)
        if not moved.any():
            then, tries = _single_entries(sets, now, order, union, tries)
            moved = (then.egress != now.egress).any(axis=2)
        if not moved.any():
            break
        now = now.with_trees(moved, then)
        arrived = (now.egress == sets.new.egress).all(axis=2)
        left &= ~(moved & arrived)
        if sets.dead(now.egress, broken & left).any():
            return [], 0
        tables.append(now)
    return tables, int(np.count_nonzero(left))


def _fits(sets: TableSets, pair: Pair, trees: Bool, union: Planes) -> bool:
    """Whether `trees` (bool[O, D]) can move together with those whose dependencies are in `union`;
    then theirs are, too."""
    trial = union.copy()
    fits = not sets.mix(pair, trees, trial).any() and sets.between_hosts(trial).acyclic
    if fits:
        union[:] = trial
    return fits


def _movable(
    sets: TableSets, pair: Pair, trees: list[tuple[int, ...]], union: Planes, tries: int
) -> tuple[Bool, int]:
    """(bool[O, D], those of `trees` that can move together; the number of tries left). Their
    dependencies are then in `union`."""
    moved = np.zeros(pair[0].egress.shape[:2], np.bool_)
    waiting, hopeless = [trees], tries - HOPELESS_UNIONS
    while waiting and tries > 0 and (moved.any() or tries > hopeless):
        group = waiting.pop()
        which = np.zeros_like(moved)
        which[tuple(np.array(group).T)] = True
        tries -= 1
        if _fits(sets, pair, which, union):
            moved |= which
        elif len(group) > 1:
            half = len(group) // 2
            waiting += [group[half:], group[:half]]
    return moved, tries


def _single_entries(
    sets: TableSets, now: TableEntries, trees: list[tuple[int, ...]], union: Planes, tries: int
) -> tuple[TableEntries, int]:
    """(tables in which as many entries of `trees` as possible have moved, those nearest to their
    destinations first; the number of tries left)."""
    then = TableEntries(now.egress.copy(), now.level.copy())
    hopeless, any_moved = tries - HOPELESS_UNIONS, False
    for o, d in trees:
        then.level[o, d] = sets.new.level[o, d]
        differ = np.flatnonzero(then.egress[o, d] != sets.new.egress[o, d])
        distance = _distances(sets, sets.new.egress[o, d], d)
        for s in sorted(differ.tolist(), key=lambda s: int(distance[s])):
            if tries <= (0 if any_moved else hopeless):
                break
            tries -= 1
            entry, then.egress[o, d, s] = then.egress[o, d, s], sets.new.egress[o, d, s]
            if _fits(sets, (now, then), sets.one_tree(o, d), union):
                any_moved = True
            else:
                then.egress[o, d, s] = entry
        if (then.egress[o, d] == now.egress[o, d]).all():
            then.level[o, d] = now.level[o, d]
    return then, tries


def _next_tables(sets: TableSets, now: TableEntries, left: Bool, outcome: U8) -> TableEntries:
    """The tables to which each tree `left` can move next without harm to its own packets."""
    then = now.with_trees(left, sets.new)
    for o, d in np.argwhere(left & (outcome != FINE)):
        then.egress[o, d] = _nearest_moved(sets, now, int(o), int(d))
    return then


def _nearest_moved(sets: TableSets, now: TableEntries, o: int, d: int) -> U8:
    """uint8[S]: one tree with new entries at switches up to some distance from its destination on
    the new tree, as far as every mixture with the present entries is safe. The nearest entries that
    differ are always safe."""
    old, new = now.egress[o, d], sets.new.egress[o, d]
    distance = _distances(sets, new, d)
    levels = np.unique(distance[old != new])
    best: U8 = old
    for at in levels:
        row = np.where(distance <= at, new, old)
        egress = now.egress.copy()
        egress[o, d] = row
        then = TableEntries(egress, now.level)
        outcome = sets.mix((now, then), sets.one_tree(o, d), sets.planes())
        if at != levels[0] and outcome[o, d] != FINE:
            break
        best = row
    return best


def _distances(sets: TableSets, row: U8, d: int) -> NDArray[np.int64]:
    """int64[S]: hops to destination `d` on its tree `row`; S for switches that do not reach it."""
    wiring, one = sets.wiring, slice(d, d + 1)
    wiring = wiring._replace(root=wiring.root[one], last=wiring.last[one])
    hops = trace(wiring, row[None], np.ones(1, np.bool_))[0].astype(np.int64)
    return np.where(hops < 0, len(row), hops)
