"""A proof that a full check leaves behind, for the next one to build on.

A job change rewrites a few of a hundred trees, a dead cable a few entries of many. What was proved
of the others still holds, as long as it is the very tables that were looked at: so a `ProvedTables`
holds
copies of its own that nobody can write to, and it is by comparing with them, never by what an
engine says, that the check finds what has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sar_agent.check.changed_tables import FEW, change_trees, changed_entries
from sar_agent.check.counted_trees import Counts, count_trees, empty_counts
from sar_agent.check.hop_lanes import HopLanes, count_hops, hops_of
from sar_agent.check.wiring import Wiring, wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.routes import Routes

A = TypeVar("A", bound=np.ndarray[Any, Any])


@dataclass(frozen=True, eq=False)
class ProvedTables:
    """Tables of which every one reaches. Made by this room only."""

    wiring: Wiring
    egress: U8
    """uint8[O, D, S], as `Routes.egress`; read-only, and nobody else's."""
    level: U8
    """uint8[O, D, S], service levels, or uint8[O, D, 0] in one lane; likewise."""
    counts: Counts
    """Exactly the dependencies of these tables; with `hops` only whether there are any."""
    changed: I32 | None = None
    """int32[O, D], entries in which each tree differs from the tables proved before; None where
    there were none."""
    hops: HopLanes | None = None
    """Lanes chosen hop by hop; None where the service level says the lane."""
    everyone: bool = False
    """Whether no credit loop was found with what goes to switches' own LIDs, too."""

    def comparable(self, wiring: Wiring, egress: U8, level: U8) -> bool:
        """Whether the same entry of both is the same port of the same switch to the same place."""
        return (
            self.hops is None
            and self.wiring.same_nodes(wiring)
            and self.egress.shape == egress.shape
            and self.level.shape == level.shape
        )


def prove(fabric: Fabric, routes: Routes) -> ProvedTables | None:
    """All of it from the beginning; None where some tree does not reach."""
    wiring = wiring_of(fabric, routes.virtual_lanes)
    egress, level = _own(routes)
    if routes.hop_lane is not None:
        hops = hops_of(fabric, routes, wiring)
        used = count_hops(wiring, hops, egress)
        return (
            None if used is None else ProvedTables(wiring, egress, level, _frozen(used), hops=hops)
        )
    offsets, destinations = egress.shape[:2]
    counts = empty_counts(wiring, offsets * destinations)
    if not all(count_trees(wiring, e, v, counts) for e, v in zip(egress, level, strict=True)):
        return None
    return ProvedTables(wiring, egress, level, _frozen(counts))


def prove_change(
    before: ProvedTables, fabric: Fabric, routes: Routes, few: int = FEW
) -> ProvedTables | None:
    """The same proof, of what differs from `before` only; None, too, where that is not the way to
    it: other nodes, half of the trees grown anew, which takes as long as all, or lanes hop by hop,
    where one entry changes what all who come behind it hold."""
    if routes.hop_lane is not None:
        return None
    wiring = wiring_of(fabric, routes.virtual_lanes)
    egress, level = _own(routes)
    if not before.comparable(wiring, egress, level):
        return None
    moved, touched = wiring.moved(before.wiring)
    tables = [
        ((before.egress[offset], egress[offset]), (before.level[offset], level[offset]))
        for offset in range(len(egress))
    ]
    changed = np.stack([changed_entries(wiring, moved, *both) for both in tables])
    if 2 * np.count_nonzero(changed > few) > changed.size:
        return None
    counts, wirings = before.counts.copy(), (before.wiring, wiring)
    for both, found in zip(tables, changed, strict=True):
        if not change_trees(wirings, moved, touched, *both, found, counts, few):
            return None
    return ProvedTables(wiring, egress, level, _frozen(counts), _frozen(changed))


def _own(routes: Routes) -> tuple[U8, U8]:
    """Copies of the tables and service levels that nobody else can write to."""
    levels = routes.service_level
    if levels is None or routes.virtual_lanes == 1:
        levels = np.empty((*routes.egress.shape[:2], 0), np.uint8)
    return _frozen(routes.egress.copy()), _frozen(levels.copy())


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
