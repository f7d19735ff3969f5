"""Old and new tables on one fabric, made comparable, and what their mixtures can do.

`explain_hazard.py` puts that into words.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.order import Dependencies
from sar_agent.check.walk import Planes, no_dependencies, read_only, trace, walk
from sar_agent.check.wiring import OTHERS, wiring_of, with_hosts
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.routes import Routes

A = TypeVar("A", bound=np.ndarray[Any, Any])
NOT_KNOWN = 254
"""In `had`: the switch may have any entry."""


class TableEntries(NamedTuple):
    """The forwarding entries of switches, and the service levels of path records."""

    egress: U8
    """uint8[O, D, S]"""
    level: U8
    """uint8[O, D, S]; uint8[O, D, 0] with one lane, or with lanes that do not depend on levels."""

    def with_trees(self, which: Bool, others: TableEntries) -> TableEntries:
        """A copy with the trees `which` (bool[O, D]) of `others`."""
        copy = TableEntries(self.egress.copy(), self.level.copy())
        copy.egress[which], copy.level[which] = others.egress[which], others.level[which]
        return copy


Pair = tuple[TableEntries, TableEntries]
"""Old and new tables."""


class OtherTables(NamedTuple):
    """Entries, packets, levels and hosts that may exist beside the old and the new tables."""

    had: U8 | None = None
    """uint8[O, D, S]: entries that switches may have instead of the old; 254: not known."""
    also: tuple[Routes, ...] = ()
    """Earlier tables by which packets that still wait in buffers have come."""
    levels: NDArray[np.uint16] | None = None
    """uint16[O, D, S]: bit sets of service levels that connections of earlier plans still use, by
    the switch where they send."""
    senders: Bool | None = None
    """bool[S]: switches at which there may be hosts that the fabric does not know."""


NO_OTHERS = OtherTables()


class TableSets:
    """The tables `before` (in force; they may be broken) and `after` on the fabric as it is now.

    Where both have the same lanes, each lane is examined separately. Otherwise the SL2VL tables
    change, too, port by port; then all lanes are merged into one, which proves less but never
    something false. **Weak spot:** so plans that need lanes hardly ever replace plans with others.
    """

    def __init__(
        self, fabric: Fabric, before: Routes, after: Routes, other: OtherTables = NO_OTHERS
    ) -> None:
        everything = (before, after, *other.also)
        self.fabric, self.other = fabric, other
        self.same_lanes = all(_same_lanes(routes, after) for routes in everything)
        lanes = (after.virtual_lanes, after.hop_lane) if self.same_lanes else (1, None)
        self.wiring = wiring_of(fabric, *lanes)
        if other.senders is not None:
            self.wiring = with_hosts(fabric, self.wiring, other.senders)
        offsets = max(len(routes.egress) for routes in everything)
        self.old, self.new, *rest = (
            TableEntries(_repeated(routes.egress, offsets), self._levels_of(routes, offsets))
            for routes in everything
        )
        self.also = tuple(rest)
        """Earlier tables, whose packets may still be in the fabric during any mixture."""
        self.had: U8 | None = None
        """uint8[O, D, S], entries that switches may have instead of the old ones; None where they
        have confirmed all."""
        if other.had is not None:  # what packets can use: live switches, destinations that are up
            used = (self.wiring.destination_kind > 0)[:, None] & fabric.switch_up
            had = np.where(used, _repeated(other.had, offsets), self.old.egress)
            self.had = None if np.array_equal(had, self.old.egress) else had
        self.handed = np.empty((*self.old.egress.shape[:2], 0), np.uint16)
        if other.levels is not None and self.old.level.size:
            self.handed = _repeated(other.levels, offsets)

    def unknown(self) -> NDArray[np.intp]:
        """intp[N, 3]: where it is not known which entry a switch may have."""
        return np.argwhere(np.zeros(0) if self.had is None else self.had == NOT_KNOWN)

    def changed(self) -> Bool:
        """bool[O, D]: trees of which an entry or a service level differs, without those that repeat
        LID offset 0."""
        old, new, differs = self.old, self.new, self._differs(self.old)
        # Trees to a switch that repeat those of offset 0, before and after, move with them.
        to_switches = slice(self.fabric.terminals, None)
        repeat = [
            (t[1:, to_switches] == t[:1, to_switches]).all(axis=2)
            for t in (old.egress, old.level, new.egress, new.level)
        ]
        differs[1:, to_switches] &= ~np.logical_and.reduce(repeat)
        return differs

    def differing(self, changed: Bool) -> Bool:
        """bool[O, D]: trees of which any of the tables lacks the new entries or levels; `changed`
        is what `changed()` returned."""
        had = () if self.had is None else (TableEntries(self.had, self.old.level),)
        found: Bool = np.logical_or.reduce(
            [changed, *(self._differs(each) for each in (*had, *self.also))]
        )
        return found

    def _differs(self, other: TableEntries) -> Bool:
        """bool[O, D]: trees of which an entry of a live switch or a service level is not new."""
        entries = other.egress != self.new.egress
        entries &= self.fabric.switch_up
        differs: Bool = entries.any(axis=2) | (other.level != self.new.level).any(axis=2)
        return differs

    def planes(self) -> Planes:
        """No dependencies yet."""
        return no_dependencies(self.wiring)

    def one_tree(self, o: int, d: int) -> Bool:
        """bool[O, D]: the tree of one destination at one LID offset."""
        only = np.zeros(self.old.egress.shape[:2], np.bool_)
        only[o, d] = True
        return only

    def mix(self, pair: Pair, which: Bool, planes: Planes) -> U8:
        """uint8[O, D]: `FINE`, `CIRCLE` or `DROP` for the trees `which` (bool[O, D]) while both
        tables of `pair` are installed; adds their dependencies to `planes`."""
        outcome, tables = np.zeros(which.shape, np.uint8), self._tables(pair)
        for o in range(len(which)):
            rows = tuple(read_only(each.egress[o]) for each in tables)
            levels = tuple(read_only(each.level[o]) for each in tables)
            handed = read_only(self.handed[o])
            outcome[o], _ = walk(self.wiring, rows, levels, handed, which[o], False, planes)
        return outcome

    def _tables(self, pair: Pair) -> list[TableEntries]:
        """All tables whose entries a mixture may have."""
        tables: list[TableEntries] = list(pair)
        had = self.had if pair[0] is self.old else None
        if had is not None or self.also:
            other = TableEntries(pair[0].egress if had is None else had, pair[0].level)
            tables += [other, *(self.also or pair[:1])]
            tables += pair[: len(tables) % 2]  # as few kernels as possible: for 2, 4, 6 tables
        return tables

    def between_hosts(self, planes: Planes) -> Dependencies:
        """The dependencies of traffic between hosts, which may close no credit loop."""
        return Dependencies(self.wiring, planes[: int(self.wiring.lanes)])

    def dead(self, egress: U8, which: Bool) -> Bool:
        """bool[O, D]: trees that do not bring every sender's packets to their destination."""
        kind = self.wiring.destination_kind
        needed = self.wiring.sends[np.where(kind == OTHERS, 1, 0)] > 0
        needed[np.arange(len(kind)), self.wiring.root] = True
        hops = [trace(self.wiring, *tree) for tree in zip(egress, which & (kind > 0), strict=True)]
        return np.array([((each < 0) & needed).any(axis=1) for each in hops])

    def _levels_of(self, routes: Routes, offsets: int) -> U8:
        levels = routes.service_level
        if not self.same_lanes or levels is None or routes.virtual_lanes == 1:
            return np.empty((offsets, routes.egress.shape[1], 0), np.uint8)
        return _repeated(levels, offsets)


def _same_lanes(before: Routes, after: Routes) -> bool:
    """Whether the SL2VL tables stay the same."""
    if before.virtual_lanes != after.virtual_lanes:
        return False
    if before.hop_lane is None or after.hop_lane is None:
        return before.hop_lane is after.hop_lane
    return np.array_equal(before.hop_lane, after.hop_lane)


def _repeated(tables: A, offsets: int) -> A:
    """`tables` for `offsets` LID offsets; missing ones repeat the first, as in the plugin."""
    missing = offsets - len(tables)
    if not missing:
        return tables
    return np.concatenate([tables, np.repeat(tables[:1], missing, axis=0)])  # type: ignore[return-value]
