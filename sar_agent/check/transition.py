"""May the routes in force be replaced by these, switch by switch, while packets travel?

After sar-2016, Definition 6. `examine` proves that every mixture of the two is safe, or says what
could happen, and then looks for a way round it (`staged.py`): intermediate tables, each of which
may be mixed with the next; or as much of the new routes as can be reached that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.explain_hazard import hazard, loop, lost
from sar_agent.check.intermediate_tables import IntermediateTables, find_intermediate_tables
from sar_agent.check.mixed_tables import CIRCLE, FINE
from sar_agent.check.proof import ProvedTables
from sar_agent.check.table_sets import NOT_KNOWN, OtherTables, TableEntries, TableSets
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.routes import Routes


class Way(StrEnum):
    """How new routes may come into force."""

    SAME = "same"
    """Nothing changes."""
    DIRECT = "direct"
    """Every mixture is safe."""
    STAGED = "staged"
    """Through intermediate tables, every mixture of neighbours is."""
    FITTED = "fitted"
    """So are these, but some trees must stay as they are: not all of the new routes."""
    UNPROVED = "unproved"
    """What is in force has circles or credit loops of its own, so nothing can be proved; or it
    loses packets now, and only a mixture that may do harm ends that."""
    UNSAFE = "unsafe"
    """A mixture may do harm, and no way round it was found."""
    UNKNOWN = "unknown"
    """What is in force is not known well enough to prove a way from it. Nothing is installed."""


@dataclass(frozen=True, eq=False)
class Transition:
    """A verdict with its proof."""

    way: Way
    danger: str
    """What could happen if the new routes were installed at once; empty where nothing could."""
    stages: tuple[Routes, ...]
    """What to install, in this order, each once all switches have confirmed the one before; the
    last are the routes that stay. Empty for `UNSAFE` and `UNKNOWN`."""
    unmoved: int = 0
    """Trees (LID offset, destination) that keep their old entries where `FITTED`."""
    drains: tuple[bool, ...] = ()
    """For each of `stages`: whether, before it is installed, packets must be gone that came by
    tables older than those it replaces. Only `True` for the first where `also` was given."""

    @property
    def proved(self) -> bool:
        """Whether packets are safe all the way through `stages`."""
        return self.way in (Way.SAME, Way.DIRECT, Way.STAGED, Way.FITTED)

    @property
    def words(self) -> str:
        """The proof, or why there is none, in a sentence."""
        if self.way is Way.SAME:
            return "nothing changes"
        if self.way is Way.DIRECT:
            return "any mixture of old and new entries is free of circles, losses and credit loops"
        if self.way is Way.STAGED:
            return f"safe in {len(self.stages)} stages; at once, {self.danger}"
        if self.way is Way.FITTED:
            return (
                f"safe in {len(self.stages)} stages if {self.unmoved} trees keep their old "
                f"entries; at once, {self.danger}"
            )
        if self.way is Way.UNPROVED:
            return f"not proved, because what is in force is not sound itself: {self.danger}"
        if self.way is Way.UNKNOWN:
            return (
                "not proved, because what is in force is not known well enough, as switches have "
                f"not confirmed their entries: {self.danger}"
            )
        return f"not safe: {self.danger}"


def examine(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    proved: ProvedTables | None = None,
    *,
    also: Sequence[Routes] = (),
    had: U8 | None = None,
    levels: NDArray[np.uint16] | None = None,
    most_stages: int = 16,
) -> Transition:
    """Whether and how `after` (which passed the check) may replace `before` (as read back, on the
    indices of `fabric`; broken entries allowed). With the proof that the check of `after` left
    behind only trees that change are walked.

    `had` is uint8[O, D, S]: what switches may have instead of `before`, where they have not
    confirmed it (254: that is not known). `also` are tables of before, by which packets that still
    wait may have come; without any, the caller promises that there are none. `levels` is
    uint16[O, D, S]: bit sets of the service levels that connections of earlier plans still have,
    by the switch where they send.
    """
    about, cases, drains = OtherTables(had, tuple(also), levels), [], (False,)
    for senders in _senders(fabric, before, after):
        about = about._replace(senders=senders)
        last = (_narrowed(fabric, before, after, senders),)
        if also:
            case = _Case(TableSets(fabric, before, after, about), proved)
            if case.safe:
                return Transition(case.way, "", last, drains=(False,))
        case = _Case(TableSets(fabric, before, after, about._replace(also=())), proved)
        if not case.mixer.known():
            return Transition(Way.UNKNOWN, _not_known(case.mixer), ())
        drains = (len(also) > 0 and case.way is not Way.SAME,)
        if case.safe:
            return Transition(case.way, "", last, drains=drains)
        cases.append(case)
    mixer = cases[-1].mixer
    own = _own_danger(
        mixer
        if mixer.same_lanes
        else TableSets(fabric, before, before, OtherTables(had, (), levels))
    )
    if own and not mixer.confirmed():
        return Transition(Way.UNKNOWN, own, ())
    if own and (levels is None or not sound_with_levels(fabric, after, levels)):
        return Transition(Way.UNPROVED, own, (after,), drains=drains)
    danger = cases[-1].danger()
    for case in () if own else cases:
        steps = find_intermediate_tables(case.mixer, case.changed, case.found, most_stages)
        # Where hardly anything moves the plan is not worth its name.
        most = np.count_nonzero(case.changed[:, : fabric.terminals])
        if steps.tables and 2 * steps.unmoved <= most:
            about = case.mixer.more._replace(also=tuple(also))
            return _through(fabric, before, after, steps, danger, about)
    if not mixer.confirmed():
        return Transition(Way.UNKNOWN, danger, ())
    if not own and (now := lost(mixer)):
        return Transition(Way.UNPROVED, f"{now}; at once, {danger}", (after,), drains=drains)
    return Transition(Way.UNSAFE, danger, ())


def _senders(fabric: Fabric, before: Routes, after: Routes) -> list[Bool | None]:
    """Where to look for hosts that the fabric does not know: bool[S] each, None for nowhere, the
    next where nothing could be proved.

    A host that booted since is at a switch where the plan in force lets it be, else that plan would
    be in force no more; and where the new plan does not, its file is refused. So mixtures meet
    only those whom both let, and where they cannot all be proved the new plan lets fewer."""
    if after.senders is None:
        return [None]
    both = after.senders & fabric.switch_up
    if before.senders is not None:
        both &= before.senders
    hosts = both & (fabric.terminals_at > 0)
    found: list[Bool | None] = [both] if both.any() else []
    if hosts.any() and (hosts != both).any():
        found.append(hosts)
    return [*found, None]


def _narrowed(fabric: Fabric, before: Routes, after: Routes, senders: Bool | None) -> Routes:
    """The new routes, for as many hosts that they do not know as were proved."""
    both = _senders(fabric, before, after)[0]
    if both is None or after.senders is None:
        return after
    less = both if senders is None else both & ~senders
    return replace(after, senders=after.senders & ~less) if less.any() else after


def sound_with_levels(fabric: Fabric, routes: Routes, levels: NDArray[np.uint16]) -> str:
    """What can happen in `routes`, which passed the check, for ever, because connections of
    earlier plans still have the service levels `levels` (uint16[O, D, S], bit sets, by the switch
    where they send), in words; empty where nothing can. A transition that was proved with `levels`
    needs it no more."""
    return _own_danger(TableSets(fabric, routes, routes, OtherTables(levels=levels)))


class _Case:
    """What the mixtures of some tables may do."""

    def __init__(self, mixer: TableSets, proved: ProvedTables | None) -> None:
        self.mixer, self.pair = mixer, (mixer.old, mixer.new)
        self.changed = mixer.changed()
        self.open = mixer.open(self.changed)
        self.found = np.zeros(self.open.shape, np.int32)
        """int32[O, D], of the trees that are open at least."""
        self.way, self.safe, self._hazard = Way.DIRECT, False, ""
        if mixer.same_lanes and not self.open.any():
            self.way, self.safe = Way.SAME, True
            return
        if not mixer.known():
            return
        known = proved is not None and mixer.knows(proved)
        if known and proved:
            self.planes = mixer.proved_planes(proved)
            self._mix(self.open)
        # With hosts that nobody knows, those planes hold more than can happen.
        more = mixer.more.senders is not None and not self.safe and not self._hazard
        if not known or more:
            self.planes = mixer.planes()
            self._mix(np.ones_like(self.open))
        if mixer.same_lanes and not self.changed.any():
            self.way = Way.SAME

    def _mix(self, which: Bool) -> None:
        self.found = self.mixer.mix(self.pair, which, self.planes)
        self._hazard = hazard(self.mixer, self.pair, np.where(self.open, self.found, FINE))
        self.safe = not self._hazard and self.mixer.acyclic(self.planes)

    def danger(self) -> str:
        """What could happen, in words, where they are not safe."""
        return self._hazard or loop(self.mixer, self.pair, self.planes)


def _not_known(mixer: TableSets) -> str:
    """A switch of which it is not known what it has, in words."""
    at = np.argwhere(mixer.old.had == NOT_KNOWN)
    switches = {int(s) for s in at[:, 2]}
    first = mixer.fabric.switch_name[min(switches)]
    more = f" and {len(switches) - 1} more" if len(switches) > 1 else ""
    return f'switch "{first}"{more} may have any entry'


def _own_danger(mixer: TableSets) -> str:
    """What can happen in what is in force, without any new entry. In its own lanes: taken as one
    they may seem to close a loop that is none, and it would be left for a mixture that does."""
    pair, planes = (mixer.old, mixer.old), mixer.planes()
    found = mixer.mix(pair, np.ones(mixer.old.egress.shape[:2], np.bool_), planes)
    if circles := hazard(mixer, pair, np.where(found == CIRCLE, found, 0)):
        return circles
    return "" if mixer.acyclic(planes) else loop(mixer, pair, planes)


def _through(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    steps: IntermediateTables,
    danger: str,
    about: OtherTables,
) -> Transition:
    offsets, senders = len(after.egress), about.senders
    if senders is None and after.senders is not None:
        senders = np.zeros_like(after.senders)
    last = _narrowed(fabric, before, after, about.senders)

    def routes(tables: TableEntries) -> Routes:
        level = tables.level[:offsets] if tables.level.size else after.service_level
        egress = tables.egress[:offsets]
        return replace(after, egress=egress, service_level=level, mark=0, senders=senders)

    *stages, end = map(routes, steps.tables)
    way, end = Way.FITTED, replace(end, senders=last.senders)
    if not steps.unmoved:
        way, end = Way.STAGED, last
    drains = _drains(fabric, (before, *stages, end), about)
    return Transition(way, danger, (*stages, end), steps.unmoved, drains)


def _drains(fabric: Fabric, tables: tuple[Routes, ...], about: OtherTables) -> tuple[bool, ...]:
    """Before which of the steps from table to table the packets of all tables before those two must
    be gone. Each pair by itself is proved, so this is asked of tables further back only: of at
    most three, for the sake of time."""
    also, found = about.also, []
    for old, new in pairwise(tables):
        drain = len(also) > 3
        if also and not drain:
            mixer = TableSets(fabric, old, new, about._replace(also=also))
            drain = not _Case(mixer, None).safe
        found.append(drain)
        also = (old,) if drain else (*also, old)
        about = about._replace(had=None)
    return tuple(found)
