"""Intermediate tables between two that must not be mixed.

Two tools, for two dangers.

*A tree that could lead packets round, or lose them,* is moved from its destination outwards: first
the switches next to it get their new entries, then those one hop further away on the new tree. A
new entry then always points to a switch that has its own, so every packet that meets one arrives.
Of several such steps as many are taken at once as no mixture forbids.

*A credit loop* needs several trees, so they are not all moved at once. In each stage as many trees
move as keep the union of all that may pass acyclic, found by halving: where all of them together
close a loop, each half is tried by itself. The dependencies of old entries are gone after the stage
and make room for the next. Where no tree can move as a whole, single entries do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sar_agent.check.mixed_tables import FINE
from sar_agent.check.table_sets import Pair, TableEntries, TableSets
from sar_agent.fabric.model import I32, U8, Bool

MOST_TRIES, HOPELESS = 2000, 200
"""Unions that are searched for a loop, over all stages; and in one, where none was free of them."""


@dataclass
class IntermediateTables:
    """Tables to install one after the other; `unmoved` trees are not at their new entries in the
    last."""

    tables: list[TableEntries] = field(default_factory=list)
    unmoved: int = 0


def find_intermediate_tables(
    mixer: TableSets, changed: Bool, found: I32, most: int
) -> IntermediateTables:
    """At most `most` stages; none where no tree can move, or one stays behind that is broken now.

    `changed` and `found` are bool and int32[O, D]: which trees are to move, and what
    `TableSets.mix`
    said of moving each at once.
    """
    broken = mixer.dead(mixer.old.egress, changed)
    now, steps, left = mixer.old, IntermediateTables(), changed.copy()
    tries = MOST_TRIES
    while left.any() and len(steps.tables) < most:
        then = _next_tables(mixer, now, left, found)
        union = mixer.planes()
        mixer.mix((now, now), np.ones_like(left), union)
        # Packets to a broken tree are lost until it moves: those come first.
        order = sorted(map(tuple, np.argwhere(left).tolist()), key=lambda at: not broken[at])
        moved, tries = _movable(mixer, (now, then), order, union, tries)
        if not moved.any():
            then, tries = _single_entries(mixer, now, order, union, tries)
            moved = (then.egress != now.egress).any(axis=2)
        if not moved.any():
            break
        now = now.with_trees(moved, then)
        arrived = (now.egress == mixer.new.egress).all(axis=2)
        left &= ~(moved & arrived)
        if mixer.dead(now.egress, broken & left).any():
            return IntermediateTables()
        steps.tables.append(now)
    steps.unmoved = int(np.count_nonzero(left))
    return steps


def _movable(
    mixer: TableSets, pair: Pair, trees: list[tuple[int, ...]], union: U8, tries: int
) -> tuple[Bool, int]:
    """bool[O, D]: those of `trees` that can move together, whose dependencies are then in `union`;
    and how many tries are left."""
    moved = np.zeros(pair[0].egress.shape[:2], np.bool_)
    waiting, hopeless = [trees], tries - HOPELESS
    while waiting and tries > 0 and (moved.any() or tries > hopeless):
        some = waiting.pop()
        which = np.zeros_like(moved)
        which[tuple(np.array(some).T)] = True
        trial = union.copy()
        found = mixer.mix(pair, which, trial)
        tries -= 1
        if (found == FINE).all() and mixer.acyclic(trial):
            union[:] = trial
            moved |= which
        elif len(some) > 1:
            half = len(some) // 2
            waiting += [some[half:], some[:half]]
    return moved, tries


def _single_entries(
    mixer: TableSets, now: TableEntries, trees: list[tuple[int, ...]], union: U8, tries: int
) -> tuple[TableEntries, int]:
    """Tables in which as many entries of `trees` as can have moved, those nearest to their
    destinations first; and how many tries are left."""
    then, hopeless, some = (
        TableEntries(now.egress.copy(), now.level.copy()),
        tries - HOPELESS,
        False,
    )
    for o, d in trees:
        then.level[o, d] = mixer.new.level[o, d]
        only = np.zeros(now.egress.shape[:2], np.bool_)
        only[o, d] = True
        differ = np.flatnonzero(then.egress[o, d] != mixer.new.egress[o, d])
        distance = _distances(mixer, mixer.new.egress[o, d], d)
        for s in sorted(differ.tolist(), key=lambda s: int(distance[s])):
            if tries <= (0 if some else hopeless):
                break
            tries -= 1
            trial, entry = union.copy(), then.egress[o, d, s]
            then.egress[o, d, s] = mixer.new.egress[o, d, s]
            found = mixer.mix((now, then), only, trial)
            if (found == FINE).all() and mixer.acyclic(trial):
                union[:], some = trial, True
            else:
                then.egress[o, d, s] = entry
        if (then.egress[o, d] == now.egress[o, d]).all():
            then.level[o, d] = now.level[o, d]
    return then, tries


def _next_tables(mixer: TableSets, now: TableEntries, left: Bool, found: I32) -> TableEntries:
    """Where each tree `left` may go next without harm to its own packets."""
    then = now.with_trees(left, mixer.new)
    for o, d in np.argwhere(left & (found != FINE)):
        then.egress[o, d] = _as_far(mixer, now, int(o), int(d))
    return then


def _as_far(mixer: TableSets, now: TableEntries, o: int, d: int) -> U8:
    """uint8[S]: the new entries of the switches up to some distance on the new tree, as many as no
    mixture with the present ones forbids. The nearest that differ always may."""
    old, new = now.egress[o, d], mixer.new.egress[o, d]
    distance = _distances(mixer, new, d)
    only = np.zeros(now.egress.shape[:2], np.bool_)
    only[o, d] = True
    levels = np.unique(distance[old != new])
    best: U8 = old
    for at in levels:
        row = np.where(distance <= at, new, old)
        egress = now.egress.copy()
        egress[o, d] = row
        then = TableEntries(egress, now.level)
        if at != levels[0] and mixer.mix((now, then), only, mixer.planes())[o, d] != FINE:
            break
        best = row
    return best


def _distances(mixer: TableSets, row: U8, d: int) -> I32:
    """int32[S]: hops to the destination on its tree; switches that are down are the farthest."""
    wiring, switches = mixer.wiring, mixer.wiring.switches
    following = wiring.next.reshape(switches, -1)
    to = following[np.arange(switches), np.minimum(row, following.shape[1] - 1)].astype(np.int64)
    distance = np.full(switches + 2, switches, np.int32)
    distance[int(wiring.root[d])] = 0
    to[int(wiring.root[d])] = switches + 1
    for _ in range(switches):
        nearer = np.minimum(distance[:switches], distance[to] + 1)
        if (nearer == distance[:switches]).all():
            break
        distance[:switches] = nearer
    return distance[:switches]
