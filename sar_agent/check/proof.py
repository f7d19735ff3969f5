"""The proof that a full check leaves behind, on which the next check builds.

A job change rewrites a few of a hundred trees, a dead cable a few entries of many trees. What was
proved of the others still holds, provided they are the very tables that were examined. So a
`ProvedTables` holds read-only copies of its own, and the check finds what has changed by comparing
with these copies; it never relies on what an engine reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sar_agent.check.changed_tables import FEW, change_trees, changed_entries
from sar_agent.check.counted_trees import Counts, count_trees, empty_counts
from sar_agent.check.hop_lanes import HopLanes, count_hops, hops_of
from sar_agent.check.wiring import Wiring, wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.routing.routes import Routes
from sar_agent.util.beside import SecondProcessor, second_processor

MANY = 2**19
"""Entries of which a second processor examines half. It costs 2 ms at 1,620 switches."""
Pair = tuple[U8, U8]
"""Before and after."""
A = TypeVar("A", bound=np.ndarray[Any, Any])


@dataclass(frozen=True, eq=False)
class ProvedTables:
    """Tables whose trees all reach their destinations. Only this room creates them."""

    wiring: Wiring
    egress: U8
    """uint8[O, D, S], as `Routes.egress`; a read-only copy."""
    level: U8
    """uint8[O, D, S], service levels, or uint8[O, D, 0] in one lane; a read-only copy."""
    counts: Counts
    """The number of trees that have each dependency; with `hops`, only 0 or 1."""
    changed: I32 | None = None
    """int32[O, D], the number of entries in which each tree differs from the tables of the proof
    before; None after a full check."""
    hops: HopLanes | None = None
    """Lanes chosen hop by hop; None where the service level determines the lane."""
    everyone: bool = False
    """Whether there is no credit loop even with traffic to the switches' own LIDs."""

    def comparable(self, wiring: Wiring, egress: U8, level: U8) -> bool:
        """Whether equal indices mean the same port of the same switch towards the same node."""
        return (
            self.hops is None
            and self.wiring.same_nodes(wiring)
            and self.egress.shape == egress.shape
            and self.level.shape == level.shape
        )


def prove(fabric: Fabric, routes: Routes) -> ProvedTables | None:
    """The proof of all trees, from scratch; None where some tree does not reach."""
    wiring = wiring_of(fabric, routes.virtual_lanes)
    egress, level = _own(routes)
    if routes.hop_lane is not None:
        hops = hops_of(fabric, routes, wiring)
        used = count_hops(wiring, hops, egress)
        return (
            None if used is None else ProvedTables(wiring, egress, level, _frozen(used), hops=hops)
        )
    offsets, destinations = egress.shape[:2]
    counts, spare = (empty_counts(wiring, offsets * destinations) for _ in range(2))
    trees = np.arange(destinations)
    with second_processor() as second:
        for both in zip(egress, level, strict=True):
            if not _counted(
                second, trees, egress, counts, spare, partial(count_trees, wiring, *both)
            ):
                return None
    return ProvedTables(wiring, egress, level, _frozen(counts))


def prove_change(
    before: ProvedTables, fabric: Fabric, routes: Routes, few: int = FEW
) -> ProvedTables | None:
    """The same proof, for which only trees that differ from `before` are examined.

    None where some tree does not reach, and where `before` does not help: the nodes are others,
    more than half of the trees were rebuilt (a full proof is as fast), or lanes are chosen hop by
    hop (one changed entry changes the lanes of all packets that pass it)."""
    if routes.hop_lane is not None:
        return None
    with second_processor() as second:
        own = second.start(partial(_own, routes))
        copied = second.start(before.counts.copy)
        wiring = wiring_of(fabric, routes.virtual_lanes)
        spare = np.zeros_like(before.counts)
        egress, level = own()
        if not before.comparable(wiring, egress, level):
            return None
        moved, touched = wiring.moved(before.wiring)
        tables = [
            ((before.egress[offset], egress[offset]), (before.level[offset], level[offset]))
            for offset in range(len(egress))
        ]
        changed = np.stack([_changed(second, wiring, moved, *both) for both in tables])
        if 2 * np.count_nonzero(changed > few) > changed.size:
            return None
        counts, wirings = copied(), (before.wiring, wiring)
        others = wiring.destination_kind != before.wiring.destination_kind
        for both, differing in zip(tables, changed, strict=True):
            trees = np.flatnonzero((differing > 0) | (len(touched) > 0) | others)
            trees = trees[np.argsort(differing[trees])]
            change = partial(change_trees, wirings, moved, touched, *both, differing, few)
            if not _counted(second, trees, egress, counts, spare, change):
                return None
    return ProvedTables(wiring, egress, level, _frozen(counts), _frozen(changed))


def _changed(second: SecondProcessor, wiring: Wiring, moved: U32, rows: Pair, levels: Pair) -> I32:
    """As `changed_entries`, of all trees."""

    def part(some: slice) -> I32:
        of_rows, of_levels = ((before[some], after[some]) for before, after in (rows, levels))
        return changed_entries(wiring, moved, of_rows, of_levels)

    if rows[1].size < MANY:
        return part(slice(None))
    half = len(rows[1]) // 2
    others = second.start(lambda: part(slice(half, None)))
    return np.concatenate([part(slice(half)), others()])


def _counted(
    second: SecondProcessor,
    trees: I64,
    egress: U8,
    counts: Counts,
    spare: Counts,
    count: Callable[[I64, Counts], bool],
) -> bool:
    """Whether all `trees` reach; `count` counts some of them. Of many trees, the second processor
    counts every second one in `spare`, which is zero before and after."""
    if len(trees) * egress.shape[2] < MANY:
        return count(trees, counts)
    reached = second.start(lambda: count(trees[1::2].copy(), spare))
    if not (count(trees[::2].copy(), counts) and reached()):
        return False
    counts += spare
    spare[:] = 0
    return True


def _own(routes: Routes) -> tuple[U8, U8]:
    """Read-only copies of the tables and service levels."""
    levels = routes.service_level
    if levels is None or routes.virtual_lanes == 1:
        levels = np.empty((*routes.egress.shape[:2], 0), np.uint8)
    return _frozen(routes.egress.copy()), _frozen(levels.copy())


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
