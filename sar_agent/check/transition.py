"""Can new routes replace the routes in force switch by switch, while packets travel?

This is Definition 6 of sar-2016. `examine` proves that every mixture of both is safe. Otherwise it
explains what could happen, and searches intermediate tables (`intermediate_tables.py`), each of
which may be mixed with the next: they lead to the new routes, or to as many of their trees as can
be reached safely.

Given the channel numbers of the new routes, which are those of the routes in force wherever these
could be kept, it also says whether they rise along every path of every mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.explain_hazard import describe_credit_loop, describe_hazard, describe_losses
from sar_agent.check.intermediate_tables import find_intermediate_tables
from sar_agent.check.order import channel_numbers, dependencies_rise
from sar_agent.check.table_sets import OtherTables, TableEntries, TableSets
from sar_agent.check.walk import CIRCLE
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.routes import Routes


class Way(StrEnum):
    """How new routes may come into force."""

    SAME = "same"
    """Nothing changes."""
    DIRECT = "direct"
    """Every mixture is safe."""
    STAGED = "staged"
    """Every mixture of two consecutive tables is safe, through intermediate tables."""
    FITTED = "fitted"
    """As `STAGED`, but some trees must keep their old entries."""
    UNPROVED = "unproved"
    """Nothing can be proved: the routes in force already loop, or they already drop packets and
    every way out is unsafe."""
    UNSAFE = "unsafe"
    """Some mixture may do harm, and no safe intermediate tables were found."""
    UNKNOWN = "unknown"
    """The routes in force are not known well enough to prove anything. Nothing is installed."""


WORDS = {
    Way.SAME: "nothing changes",
    Way.DIRECT: "any mixture of old and new entries is free of circles, losses and credit loops",
    Way.STAGED: "safe in {stages} stages; at once, {danger}",
    Way.FITTED: "safe in {stages} stages if {unmoved} trees keep their old entries; at once, "
    "{danger}",
    Way.UNPROVED: "not proved, because the routes in force are unsafe already: {danger}",
    Way.UNSAFE: "not safe: {danger}",
    Way.UNKNOWN: "not proved, because the routes in force are not known while switches have not "
    "confirmed their entries: {danger}",
}


@dataclass(frozen=True, eq=False)
class Transition:
    """How new routes may come into force, and the proof of it."""

    way: Way
    danger: str
    """What could happen if the new routes were installed at once; empty where nothing could."""
    stages: tuple[Routes, ...]
    """The routes to install, in this order. Each waits until all switches have confirmed the one
    before; the last are the routes that stay. Empty for `UNSAFE` and `UNKNOWN`."""
    unmoved: int = 0
    """Trees (LID offset, destination) that keep their old entries, where `way` is `FITTED`."""
    drains: tuple[bool, ...] = ()
    """For each of `stages`: whether packets that came by tables older than those it replaces must
    have left the fabric before it is installed. `True` for the first only where `also` was
    given."""
    numbers: U32 | None = None
    """uint32[L, S, P]: channel numbers that rise along every path of every mixture, where `way` is
    `DIRECT`: those that were given or, where these do not, a joint order of both tables. None where
    no numbers were given."""

    @property
    def proved(self) -> bool:
        """Whether packets are safe all the way through `stages`."""
        return self.way in (Way.SAME, Way.DIRECT, Way.STAGED, Way.FITTED)

    @property
    def words(self) -> str:
        """The proof, or why there is none, in a sentence."""
        return WORDS[self.way].format(
            stages=len(self.stages), unmoved=self.unmoved, danger=self.danger
        )


def examine(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    *,
    also: Sequence[Routes] = (),
    had: U8 | None = None,
    levels: NDArray[np.uint16] | None = None,
    numbers: U32 | None = None,
    most_stages: int = 16,
) -> Transition:
    """Whether and how `after` may replace `before`.

    `after` passed the check. `before` was read back, on the indices of `fabric`, and may have
    broken entries.

    `had` is uint8[O, D, S]: entries that switches may have instead of `before`, where they have
    not confirmed it (254: unknown). `also` are earlier tables by which packets still in the fabric
    may have come; without any, the caller promises that there are no such packets. `levels` is
    uint16[O, D, S]: bit sets of the service levels that connections of earlier plans still use, by
    the switch where they send. `numbers` are the certificate of `after` (`certificate_of`).
    """
    other, cases, drains = OtherTables(had, (), levels), [], (False,)
    for senders in _senders(fabric, before, after):
        for earlier in dict.fromkeys((tuple(also), ())):
            other = other._replace(senders=senders, also=earlier)
            case = _Mixtures(TableSets(fabric, before, after, other), numbers)
            if len(unknown := case.sets.unknown()):
                first, *rest = sorted(set(unknown[:, 2].tolist()))
                more = f" and {len(rest)} more" if rest else ""
                danger = f'switch "{fabric.switch_name[first]}"{more} may have any entry'
                return Transition(Way.UNKNOWN, danger, ())
            drains = (len(also) > len(earlier) and case.way is not Way.SAME,)
            if case.safe:
                last = _narrowed(fabric, before, after, senders)
                return Transition(case.way, "", (last,), 0, drains, case.order())
        cases.append(case)
    sets = cases[-1].sets
    own = _own_danger(
        sets if sets.same_lanes else TableSets(fabric, before, before, OtherTables(had, (), levels))
    )
    if own and sets.had is not None:
        return Transition(Way.UNKNOWN, own, ())
    if own and (levels is None or not sound_with_levels(fabric, after, levels)):
        return Transition(Way.UNPROVED, own, (after,), drains=drains)
    danger = cases[-1].danger()
    for case in () if own else cases:
        tables, unmoved = find_intermediate_tables(
            case.sets, case.changed, case.outcome, most_stages
        )
        # Tables that move less than half of the trees are not worth installing.
        most = np.count_nonzero(case.changed[:, : fabric.terminals])
        if tables and 2 * unmoved <= most:
            other = case.sets.other._replace(also=tuple(also))
            return _staged(fabric, before, after, tables, unmoved, danger, other)
    if sets.had is not None:
        return Transition(Way.UNKNOWN, danger, ())
    if not own and (now := describe_losses(sets)):
        return Transition(Way.UNPROVED, f"{now}; at once, {danger}", (after,), drains=drains)
    return Transition(Way.UNSAFE, danger, ())


def _senders(fabric: Fabric, before: Routes, after: Routes) -> list[Bool | None]:
    """Sets of switches at which hosts that the fabric does not know may send: bool[S] each, or None
    for no switch. The next set is tried where nothing could be proved for the one before.

    Such a host booted at a switch where the plan in force allows it, or that plan would not be in
    force any more; and the plugin refuses the new plan's file where that does not allow it. So
    mixtures meet only hosts that both plans allow. Where these cannot all be proved, the new plan
    allows fewer."""
    if after.senders is None:
        return [None]
    both = after.senders & fabric.switch_up
    if before.senders is not None:
        both &= before.senders
    hosts = both & (fabric.terminals_at > 0)
    sets: list[Bool | None] = [both] if both.any() else []
    if hosts.any() and (hosts != both).any():
        sets.append(hosts)
    return [*sets, None]


def _narrowed(fabric: Fabric, before: Routes, after: Routes, senders: Bool | None) -> Routes:
    """The new routes, which allow unknown hosts only at switches where that was proved."""
    both = _senders(fabric, before, after)[0]
    if both is None or after.senders is None:
        return after
    less = both if senders is None else both & ~senders
    return replace(after, senders=after.senders & ~less) if less.any() else after


def sound_with_levels(fabric: Fabric, routes: Routes, levels: NDArray[np.uint16]) -> str:
    """What can happen in `routes` for as long as connections of earlier plans use the service
    levels `levels` (uint16[O, D, S], bit sets, by the switch where they send); empty where nothing
    can. `routes` passed the check. After a transition that was proved with `levels`, this question
    is answered already."""
    return _own_danger(TableSets(fabric, routes, routes, OtherTables(levels=levels)))


class _Mixtures:
    """The mixtures of old and new tables, and whether all of them are safe."""

    def __init__(self, sets: TableSets, numbers: U32 | None = None) -> None:
        self.sets, self.pair, self.numbers = sets, (sets.old, sets.new), numbers
        self.changed, self.planes = sets.changed(), sets.planes()
        same = sets.same_lanes and not self.changed.any()
        self.way = Way.SAME if same else Way.DIRECT
        self.safe = self._rising = False
        if len(sets.unknown()):
            return
        self.safe = self._rising = self._differing_rise()
        if self.safe:
            return
        self.outcome = sets.mix(self.pair, np.ones_like(self.changed), self.planes)
        """uint8[O, D]: `FINE`, `CIRCLE` or `DROP` for each tree."""
        self._hazard = describe_hazard(sets, self.pair, self.outcome)
        if not self._hazard:
            hosts = self.planes[: int(sets.wiring.lanes)]
            self._rising = numbers is not None and dependencies_rise(sets.wiring, hosts, numbers)
            self.safe = self._rising or sets.between_hosts(self.planes).acyclic

    def _differing_rise(self) -> bool:
        """Whether mixtures of the trees that differ are free of circles and losses, and the numbers
        rise along them. All other trees are the new tables', which passed the check, and the
        numbers rise along them, since they are their certificate: nothing more could be found."""
        sets = self.sets
        if self.numbers is None or not sets.same_lanes or sets.handed.size:
            return False
        planes = sets.planes()
        if sets.mix(self.pair, sets.differing(self.changed), planes).any():
            return False
        return dependencies_rise(sets.wiring, planes[: int(sets.wiring.lanes)], self.numbers)

    def order(self) -> U32 | None:
        """`Transition.numbers`, where all mixtures are safe."""
        sets = self.sets
        if self._rising or self.numbers is None or not sets.same_lanes:
            return self.numbers if self._rising else None
        hosts, others = np.split(self.planes, 2)
        numbers = channel_numbers(sets.fabric, sets.wiring, hosts | others)
        return channel_numbers(sets.fabric, sets.wiring, hosts) if numbers is None else numbers

    def danger(self) -> str:
        """What could happen, where some mixture is not safe."""
        return self._hazard or describe_credit_loop(self.sets, self.pair, self.planes)


def _own_danger(sets: TableSets) -> str:
    """What is already unsafe in the installed tables. Each lane is examined separately: merged,
    they can show a credit loop that does not exist, and a transition that really can deadlock would
    then be accepted."""
    pair, planes = (sets.old, sets.old), sets.planes()
    outcome = sets.mix(pair, np.ones(sets.old.egress.shape[:2], np.bool_), planes)
    if circles := describe_hazard(sets, pair, np.where(outcome == CIRCLE, outcome, 0)):
        return circles
    acyclic = sets.between_hosts(planes).acyclic
    return "" if acyclic else describe_credit_loop(sets, pair, planes)


def _staged(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    tables: list[TableEntries],
    unmoved: int,
    danger: str,
    other: OtherTables,
) -> Transition:
    offsets, senders = len(after.egress), other.senders
    if senders is None and after.senders is not None:
        senders = np.zeros_like(after.senders)
    last = _narrowed(fabric, before, after, other.senders)

    def routes(entries: TableEntries) -> Routes:
        level = entries.level[:offsets] if entries.level.size else after.service_level
        egress = entries.egress[:offsets]
        return replace(after, egress=egress, service_level=level, mark=0, senders=senders)

    *stages, end = map(routes, tables)
    way, end = Way.FITTED, replace(end, senders=last.senders)
    if not unmoved:
        way, end = Way.STAGED, last
    drains = drains_between(fabric, (before, *stages, end), other)
    return Transition(way, danger, (*stages, end), unmoved, drains)


def drains_between(
    fabric: Fabric, tables: tuple[Routes, ...], other: OtherTables
) -> tuple[bool, ...]:
    """For each step from table to table: whether packets of all tables before those two must have
    left the fabric first. Each pair is proved already, so only earlier tables are examined; at
    most three of them, to bound the time."""
    also, drains = other.also, []
    for old, new in pairwise(tables):
        drain = len(also) > 3
        if also and not drain:
            sets = TableSets(fabric, old, new, other._replace(also=also))
            drain = not _Mixtures(sets).safe
        drains.append(drain)
        also = (old,) if drain else (*also, old)
        other = other._replace(had=None)
    return tuple(drains)
