"""Old and new tables on one fabric, made comparable, and what their mixtures can do.

`explain_hazard.py` puts that into words.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.credit_loops import credit_loop
from sar_agent.check.hop_lanes import NO_HOPS, hops_of
from sar_agent.check.mixed_tables import mix_trees
from sar_agent.check.proof import ProvedTables
from sar_agent.check.unknown_senders import UnknownSenders, begin_anywhere, ports_down, with_senders
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.routing.routes import Routes

A = TypeVar("A", bound=np.ndarray[Any, Any])
NOT_KNOWN = 254
"""In `had`: the switch may have any entry."""
_NONE: U8 = np.empty((0, 0, 0), np.uint8)


class TableEntries(NamedTuple):
    """The forwarding entries of switches, and the service levels of path records."""

    egress: U8
    """uint8[O, D, S]"""
    level: U8
    """uint8[O, D, S]; uint8[O, D, 0] with one lane, or with lanes that do not depend on levels."""
    had: U8 = _NONE
    """uint8[O, D, S], entries that switches may have instead of `egress`; empty where all are
    confirmed."""

    def with_trees(self, which: Bool, others: TableEntries) -> TableEntries:
        """A copy with the trees `which` (bool[O, D]) of `others`; all its entries are confirmed."""
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
    something false.
    """

    def __init__(
        self, fabric: Fabric, before: Routes, after: Routes, other: OtherTables = NO_OTHERS
    ) -> None:
        everything = (before, after, *other.also)
        self.fabric, self.other = fabric, other
        self.same_lanes = all(_same_lanes(routes, after) for routes in everything)
        self.by_hop = self.same_lanes and after.hop_lane is not None
        self.wiring = wiring_of(fabric, after.virtual_lanes if self.same_lanes else 1)
        self.hops = hops_of(fabric, after, self.wiring) if self.by_hop else NO_HOPS
        if other.senders is not None:
            self.wiring = with_senders(fabric, self.wiring, other.senders)
            if self.by_hop:
                self.hops = begin_anywhere(fabric, self.wiring, self.hops, other.senders)
        offsets = max(len(routes.egress) for routes in everything)
        self.old, self.new, *rest = (
            TableEntries(_repeated(routes.egress, offsets), self._levels_of(routes, offsets))
            for routes in everything
        )
        self.also = tuple(rest)
        """Earlier tables, whose packets may still be in the fabric during any mixture."""
        if other.had is not None:
            had = _repeated(other.had, offsets)
            had = np.where(self._used(), had, self.old.egress)
            if not np.array_equal(had, self.old.egress):
                self.old = self.old._replace(had=had)
        self.handed = np.empty((*self.old.egress.shape[:2], 0), np.uint16)
        if other.levels is not None and self.old.level.size:
            self.handed = _repeated(other.levels, offsets)

    def _used(self) -> Bool:
        """bool[D, S]: entries that packets can use: live switches, destinations that are up."""
        used: Bool = (self.wiring.destination_kind > 0)[:, None] & self.fabric.switch_up
        return used

    def confirmed(self) -> bool:
        """Whether all switches have confirmed the old tables."""
        return not self.old.had.size

    def known(self) -> bool:
        """Whether it is known which entries each switch may have."""
        return self.confirmed() or not (self.old.had == NOT_KNOWN).any()

    def changed(self) -> Bool:
        """bool[O, D]: trees of which an entry or a service level differs, without those that repeat
        LID offset 0."""
        old, new = self.old, self.new
        differs = self._differs(old, new)
        # Trees to a switch that repeat those of offset 0, before and after, move with them.
        to_switches = slice(self.fabric.terminals, None)
        repeat = [
            (t[1:, to_switches] == t[:1, to_switches]).all(axis=2)
            for t in (old.egress, old.level, new.egress, new.level)
        ]
        differs[1:, to_switches] &= ~np.logical_and.reduce(repeat)
        return differs

    def open(self, changed: Bool) -> Bool:
        """bool[O, D]: trees on which packets can meet other entries or levels than the new tables':
        those `changed`, and those that differ in unconfirmed entries, earlier tables or levels."""
        differs = changed.copy()
        if not self.confirmed():
            differs |= (self.old.had != self.old.egress).any(axis=2)
        for tables in self.also:
            differs |= self._differs(tables, self.new)
        if self.handed.size:
            own = np.uint16(1) << self.new.level.astype(np.uint16)
            differs |= (self.handed & ~own).any(axis=2)
        return differs

    def _differs(self, old: TableEntries, new: TableEntries) -> Bool:
        """bool[O, D]: trees of which an entry at a live switch, or a level, differs."""
        differs = np.zeros(old.egress.shape[:2], np.bool_)
        up = self.fabric.switch_up
        for o in range(len(differs)):
            differs[o] = ((old.egress[o] != new.egress[o]) & up).any(axis=1)
            differs[o] |= (old.level[o] != new.level[o]).any(axis=1)
        return differs

    def knows(self, proved: ProvedTables) -> bool:
        """Whether `proved`, the proof of the new tables, counts dependencies by the same lanes,
        nodes and ports as this object."""
        senders = self.other.senders
        return (
            self.same_lanes
            and (senders is None or not ports_down(self.fabric, senders).any())
            and proved.egress.shape == self.new.egress.shape
            and self.wiring.same_nodes(proved.wiring)
        )

    def proved_planes(self, proved: ProvedTables) -> U8:
        """uint8[2 L, S · P · P]: the dependencies of `proved`; where unknown hosts may send, also
        theirs, and those of all traffic to switches."""
        planes = (proved.counts > 0).view(np.uint8)
        if (senders := self.other.senders) is not None:
            lanes = len(planes) // 2
            planes[:lanes] |= planes[lanes:]
            unknown = UnknownSenders(self.fabric, proved)
            sources = senders if proved.hops else senders & ~unknown.hosts
            if sources.any():
                unknown.follow(sources, senders, True, senders, planes[:lanes])
        return planes

    def planes(self) -> U8:
        """uint8[2 L, S · P · P]: planes without dependencies."""
        size = self.wiring.switches * int(self.wiring.ports) ** 2
        return np.zeros((2 * int(self.wiring.lanes), size), np.uint8)

    def mix(self, pair: Pair, which: Bool, planes: U8) -> I32:
        """int32[O, D]: `FINE`, `CIRCLE` or `DROP` for the trees `which` (bool[O, D]) while both
        tables of `pair` are installed; adds their dependencies to `planes`."""
        outcome = np.zeros(which.shape, np.int32)
        tables = self._tables(pair)
        for o in range(len(which)):
            rows = tuple(_read(each.egress[o]) for each in tables)
            levels = tuple(_read(each.level[o]) for each in tables)
            handed = _read(self.handed[o])
            outcome[o] = mix_trees(
                self.wiring, self.hops, self.by_hop, rows, levels, handed, which[o], planes
            )
        return outcome

    def _tables(self, pair: Pair) -> list[TableEntries]:
        """All tables whose entries a mixture may have."""
        tables: list[TableEntries] = list(pair)
        if pair[0].had.size or self.also:
            had = pair[0].had if pair[0].had.size else pair[0].egress
            tables += [TableEntries(had, pair[0].level), *(self.also or pair[:1])]
            tables += pair[: len(tables) % 2]  # as few kernels as possible: for 2, 4, 6 tables
        return tables

    def acyclic(self, planes: U8) -> bool:
        """Whether no lane has a credit loop between hosts."""
        return not self.credit_loop(planes)

    def credit_loop(self, planes: U8) -> list[tuple[int, int, int]]:
        """A credit loop between hosts; see `check/credit_loops.py`."""
        hosts = planes[: int(self.wiring.lanes)]
        return credit_loop(self.wiring, hosts, self.hops if self.by_hop else None)

    def dead(self, egress: U8, which: Bool) -> Bool:
        """bool[O, D]: trees that do not bring every sender's packets to their destination."""
        dead = np.zeros(which.shape, np.bool_)
        wiring = self.wiring
        width, senders = int(wiring.ports) + 1, wiring.sends > 0
        following = wiring.next.reshape(wiring.switches, width)
        everywhere = np.arange(wiring.switches)
        for o, d in np.argwhere(which):
            if not wiring.destination_kind[d]:
                continue
            row, root = egress[o, d], int(wiring.root[d])
            to = following[everywhere, np.minimum(row, width - 1)].astype(np.int64)
            here = np.flatnonzero(senders[wiring.destination_kind[d] - 1])
            for _ in range(wiring.switches):
                here = here[here != root]
                if not len(here) or (here >= wiring.switches).any():
                    break
                here = np.unique(to[here])
            dead[o, d] = len(here) > 0 or row[root] != wiring.last[d]
        return dead

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


def _read(array: A) -> A:
    """A contiguous, read-only view, so that kernels see one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view  # type: ignore[return-value]


def _repeated(tables: A, offsets: int) -> A:
    """`tables` for `offsets` LID offsets; missing ones repeat the first, as in the plugin."""
    missing = offsets - len(tables)
    if not missing:
        return tables
    return np.concatenate([tables, np.repeat(tables[:1], missing, axis=0)])  # type: ignore[return-value]
