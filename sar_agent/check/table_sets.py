"""Old tables and new on one fabric, made comparable, and what their mixtures may do.

In words: `telling.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.credit_loops import loop_free
from sar_agent.check.hop_lanes import NO_HOPS, hop_loop, hops_of
from sar_agent.check.mixed_tables import mix_trees
from sar_agent.check.proof import ProvedTables
from sar_agent.check.unknown_senders import UnknownSenders, begin_anywhere, ports_down, with_senders
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.routing.routes import Routes

A = TypeVar("A", bound=np.ndarray[Any, Any])
NOT_KNOWN = 254
"""In `had`: the switch may have anything."""
_NONE: U8 = np.empty((0, 0, 0), np.uint8)


class TableEntries(NamedTuple):
    """What switches and path records say at one time."""

    egress: U8
    """uint8[O, D, S]"""
    level: U8
    """uint8[O, D, S], or uint8[O, D, 0] where one lane is enough, or levels do not say it."""
    had: U8 = _NONE
    """uint8[O, D, S], what switches may have instead of `egress`; empty where all is confirmed."""

    def with_trees(self, which: Bool, others: TableEntries) -> TableEntries:
        """A copy in which the trees `which` (bool[O, D]) are those of `others`, all confirmed."""
        mine = TableEntries(self.egress.copy(), self.level.copy())
        mine.egress[which], mine.level[which] = others.egress[which], others.level[which]
        return mine


Pair = tuple[TableEntries, TableEntries]
"""Old and new."""


class OtherTables(NamedTuple):
    """What else may be about beside the old tables and the new."""

    had: U8 | None = None
    """uint8[O, D, S]: entries that switches may have instead of the old; 254: it is not known."""
    also: tuple[Routes, ...] = ()
    """Tables of before, by which packets that still wait somewhere have come."""
    levels: NDArray[np.uint16] | None = None
    """uint16[O, D, S]: bit sets of service levels that connections of earlier plans still have,
    by the switch where they send."""
    senders: Bool | None = None
    """bool[S]: switches at which there may be hosts that the fabric does not know."""


NOTHING_MORE = OtherTables()


class TableSets:
    """Tables `before` (in force; they may be broken) and `after` on the fabric as it is now.

    Where both have the same lanes, each is looked at by itself. Where they have not, SL2VL tables
    change, too, port by port: then all lanes are taken as one, which proves less but nothing false.
    """

    def __init__(
        self, fabric: Fabric, before: Routes, after: Routes, more: OtherTables = NOTHING_MORE
    ) -> None:
        everything = (before, after, *more.also)
        self.fabric, self.more = fabric, more
        self.same_lanes = all(_same_lanes(routes, after) for routes in everything)
        self.by_hop = self.same_lanes and after.hop_lane is not None
        self.wiring = wiring_of(fabric, after.virtual_lanes if self.same_lanes else 1)
        self.hops = hops_of(fabric, after, self.wiring) if self.by_hop else NO_HOPS
        if more.senders is not None:
            self.wiring = with_senders(fabric, self.wiring, more.senders)
            if self.by_hop:
                self.hops = begin_anywhere(fabric, self.wiring, self.hops, more.senders)
        offsets = max(len(routes.egress) for routes in everything)
        self.old, self.new, *rest = (
            TableEntries(_repeated(routes.egress, offsets), self._levels_of(routes, offsets))
            for routes in everything
        )
        self.also = tuple(rest)
        """Tables of before, whose packets may still be there in any mixture."""
        if more.had is not None:
            had = _repeated(more.had, offsets)
            had = np.where(self._matters(), had, self.old.egress)
            if not np.array_equal(had, self.old.egress):
                self.old = self.old._replace(had=had)
        self.handed = np.empty((*self.old.egress.shape[:2], 0), np.uint16)
        if more.levels is not None and self.old.level.size:
            self.handed = _repeated(more.levels, offsets)

    def _matters(self) -> Bool:
        """bool[D, S]: entries that anybody may ask for."""
        asked: Bool = (self.wiring.asks > 0)[:, None] & self.fabric.switch_up
        return asked

    def confirmed(self) -> bool:
        """Whether all switches are known to have the old tables."""
        return not self.old.had.size

    def known(self) -> bool:
        """Whether it is known what each switch may have."""
        return self.confirmed() or not (self.old.had == NOT_KNOWN).any()

    def changed(self) -> Bool:
        """bool[O, D]: trees of their own of which an entry or a service level differs."""
        old, new = self.old, self.new
        differs = self._differs(old, new)
        # Ways to a switch that repeat those of offset 0, before and after, move with them.
        ways = slice(self.fabric.terminals, None)
        repeat = [
            (t[1:, ways] == t[:1, ways]).all(axis=2)
            for t in (old.egress, old.level, new.egress, new.level)
        ]
        differs[1:, ways] &= ~np.logical_and.reduce(repeat)
        return differs

    def open(self, changed: Bool) -> Bool:
        """bool[O, D]: trees of which packets may meet more than what the new tables say: those
        `changed`, and those that differ in anything else that may be about."""
        found = changed.copy()
        if not self.confirmed():
            found |= (self.old.had != self.old.egress).any(axis=2)
        for tables in self.also:
            found |= self._differs(tables, self.new)
        if self.handed.size:
            own = np.uint16(1) << self.new.level.astype(np.uint16)
            found |= (self.handed & ~own).any(axis=2)
        return found

    def _differs(self, one: TableEntries, other: TableEntries) -> Bool:
        found = np.zeros(one.egress.shape[:2], np.bool_)
        up = self.fabric.switch_up
        for o in range(len(found)):
            found[o] = ((one.egress[o] != other.egress[o]) & up).any(axis=1)
            found[o] |= (one.level[o] != other.level[o]).any(axis=1)
        return found

    def knows(self, proved: ProvedTables) -> bool:
        """Whether the dependencies of `proved`, the new tables' own, are counted as here."""
        new = self.more.senders
        return (
            self.same_lanes
            and (new is None or not ports_down(self.fabric, new).any())
            and proved.egress.shape == self.new.egress.shape
            and self.wiring.same_nodes(proved.wiring)
        )

    def proved_planes(self, proved: ProvedTables) -> U8:
        """The dependencies of `proved` in their place; with those of hosts that the fabric does
        not know, and of all that is led to switches."""
        planes = (proved.counts > 0).view(np.uint8)
        if (new := self.more.senders) is not None:
            lanes = len(planes) // 2
            planes[:lanes] |= planes[lanes:]
            senders = UnknownSenders(self.fabric, proved)
            sources = new if proved.hops else new & ~senders.hosts
            if sources.any():
                senders.follow(sources, new, True, new, planes[:lanes])
        return planes

    def planes(self) -> U8:
        """uint8[2 L, S · P · P]: no dependencies."""
        size = self.wiring.switches * int(self.wiring.ports) ** 2
        return np.zeros((2 * int(self.wiring.lanes), size), np.uint8)

    def mix(self, pair: Pair, which: Bool, planes: U8) -> I32:
        """int32[O, D]: `FINE`, `CIRCLE` or `DROP` of the trees `which` (bool[O, D]) between two
        tables; their dependencies are put into `planes`."""
        found = np.zeros(which.shape, np.int32)
        tables: list[TableEntries] = list(pair)
        if pair[0].had.size or self.also:
            had = pair[0].had if pair[0].had.size else pair[0].egress
            tables += [TableEntries(had, pair[0].level), *(self.also or pair[:1])]
            tables += pair[: len(tables) % 2]  # as few kernels as possible: for 2, 4, 6 tables
        for o in range(len(which)):
            rows = tuple(_read(each.egress[o]) for each in tables)
            levels = tuple(_read(each.level[o]) for each in tables)
            handed = _read(self.handed[o])
            found[o] = mix_trees(
                self.wiring, self.hops, self.by_hop, rows, levels, handed, which[o], planes
            )
        return found

    def acyclic(self, planes: U8) -> bool:
        """Whether no lane has a credit loop between hosts."""
        if self.by_hop:
            return not hop_loop(self.wiring, self.hops, planes, everyone=False)
        return loop_free(self.wiring, planes)[0]

    def dead(self, egress: U8, which: Bool) -> Bool:
        """bool[O, D]: trees that do not bring every sender's packets to their destination."""
        found = np.zeros(which.shape, np.bool_)
        wiring = self.wiring
        width, senders = int(wiring.ports) + 1, wiring.sends > 0
        following = wiring.next.reshape(wiring.switches, width)
        everywhere = np.arange(wiring.switches)
        for o, d in np.argwhere(which):
            if not wiring.asks[d]:
                continue
            row, root = egress[o, d], int(wiring.root[d])
            to = following[everywhere, np.minimum(row, width - 1)].astype(np.int64)
            here = np.flatnonzero(senders[wiring.asks[d] - 1])
            for _ in range(wiring.switches):
                here = here[here != root]
                if not len(here) or (here >= wiring.switches).any():
                    break
                here = np.unique(to[here])
            found[o, d] = len(here) > 0 or row[root] != wiring.last[d]
        return found

    def _levels_of(self, routes: Routes, offsets: int) -> U8:
        levels = routes.service_level
        if not self.same_lanes or levels is None or routes.virtual_lanes == 1:
            return np.empty((offsets, routes.egress.shape[1], 0), np.uint8)
        return _repeated(levels, offsets)


def _same_lanes(before: Routes, after: Routes) -> bool:
    """Whether SL2VL tables stay."""
    if before.virtual_lanes != after.virtual_lanes:
        return False
    if before.hop_lane is None or after.hop_lane is None:
        return before.hop_lane is after.hop_lane
    return np.array_equal(before.hop_lane, after.hop_lane)


def _read(array: A) -> A:
    """In one piece, and nobody writes to it: so kernels see one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view  # type: ignore[return-value]


def _repeated(tables: A, offsets: int) -> A:
    """Those of LID offsets that are not there repeat the first, as the plugin has them."""
    missing = offsets - len(tables)
    if not missing:
        return tables
    return np.concatenate([tables, np.repeat(tables[:1], missing, axis=0)])  # type: ignore[return-value]
