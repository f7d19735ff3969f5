"""Entries that serve the collectives of jobs: rings first, then the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, U8, Bool
from sar_agent.fabric.xgft_view import XgftView
from sar_agent.jobs import JobMix
from sar_agent.routing.collectives.contention import contention_of
from sar_agent.routing.collectives.limits import ring_limits
from sar_agent.routing.collectives.moves import Tables, new_log
from sar_agent.routing.collectives.objective import EQUAL, relative_time, times_of
from sar_agent.routing.collectives.phase_demand import PhaseDemand, phase_demand
from sar_agent.routing.collectives.rings import separate_rings, whole_tree
from sar_agent.routing.collectives.search import DEPTH, give_back, search
from sar_agent.routing.collectives.sums import OVER, sums_of
from sar_agent.routing.collectives.ways import paths_of, ways_of
from sar_agent.routing.template import Template, tables_without_jobs

PRICE = 0.01
"""Of an exception: what a phase of one job must gain in one collective, as a share of a phase
without contention; less where there are few jobs (`FEW`)."""
FEW = 2
WARMTH = 0.003
"""The temperature at first, in the same unit."""
TRIES = 40_000
"""The most moves that are tried at first; a later round tries half as many."""
TRIES_PER_ITEM = 4
LEAST_TRIES = 10_000
ENOUGH = 50
"""For each item: a small job that starts takes fewer than `LEAST_TRIES`."""
RING_TRIES = 40_000
ROUNDS = 6
"""A round follows while a collective takes longer than on the best tables without jobs; it counts
`AGAIN` times as much then."""
AGAIN = 3.0


class Worth(NamedTuple):
    """What tables are worth: less is better. Those on which a collective takes longer than on the
    best tables without jobs are worse than all others."""

    loses: bool
    time: float
    """`objective.py`"""


@dataclass(frozen=True)
class Collectives:
    """The collectives of the jobs on a fabric, and what they take on the templates."""

    fabric: Fabric
    demand: PhaseDemand
    usual: F64
    """float64[P]: the time of each collective on the best of the tables that ignore jobs."""
    whole: I32
    """int32[J]: the job that each is a part of."""

    @classmethod
    def of(cls, fabric: Fabric, mix: JobMix) -> Collectives:
        demand = phase_demand(fabric, mix)
        made = cls(fabric, demand, np.empty(0), mix.whole_of[demand.order])
        each = [made.times(egress) for egress in tables_without_jobs(fabric)]
        return replace(made, usual=np.min(each, axis=0))

    @cached_property
    def width(self) -> F64:
        """float64[C]: messages at full speed that a channel carries at once."""
        return _width(self.fabric)

    @cached_property
    def view(self) -> XgftView | None:
        return whole_tree(self.fabric)

    @cached_property
    def limit(self) -> I32:
        """int32[C]: the cut bound of rings."""
        return ring_limits(self.fabric, self.width, self.demand)

    def items_of(self, jobs: Bool) -> Bool:
        """bool[I]: the items over which one of these jobs of the mix, bool[J], sends."""
        demand = self.demand
        of_phase = jobs[demand.order][demand.job]
        item = np.repeat(np.arange(len(demand.leaf)), np.diff(demand.use))
        found = np.zeros(len(demand.leaf), np.bool_)
        found[item[of_phase[demand.use_phase]]] = True
        return found

    def worth(self, egress: U8) -> Worth:
        """What these tables are worth."""
        return self._worth(self.times(egress))

    def _worth(self, times: F64) -> Worth:
        return Worth(bool(self._slower(times).any()), relative_time(times, self.usual))

    def _slower(self, times: F64) -> Bool:
        """bool[P]: the collectives that take longer than on the best tables without jobs."""
        slower: Bool = times > EQUAL * self.usual
        return slower

    def serve(
        self,
        template: Template,
        egress: U8,
        ceiling: float,
        highest: float,
        free: Bool | None = None,
    ) -> None:
        """Changes `egress` uint8[T + S, S] so that rings meet no more than they must, and the other
        collectives little. No load rises above `ceiling`, or `highest` where a collective would
        take longer than on the best tables without jobs. `free` bool[I]: items whose entries alone
        may change, but for those of rings that must make way; None: all are. Where the tree is not
        full, and keeping rings apart makes another collective slower than on the best tables
        without jobs, rings are one collective among the others."""
        if free is None:
            free = np.ones(len(self.demand.leaf), np.bool_)
        first = egress.copy()
        self.separate(template, egress, free)
        worth = self._serve(template, egress, ceiling, highest, free)
        if worth.loses and not self.always_apart:
            plain = self.demand._replace(ring=np.zeros_like(self.demand.ring))
            among = replace(self, demand=plain)
            if among._serve(template, first, ceiling, highest, free) < worth:
                egress[:] = first

    @property
    def always_apart(self) -> bool:
        """Whether rings are kept apart whatever that costs other collectives: on full trees where
        no host is in two jobs. In a tapered tree the routes that keep rings apart may make all
        other collectives slower than on the template (`tests/property/test_rings.py` has one)."""
        if not self.demand.ring.any():
            return True
        view = self.view
        full = view is not None and all(
            down <= up for down, up in zip(view.m[:-1], view.w[1:], strict=True)
        )
        return full and int(self.limit.max()) == 1

    def _serve(
        self, template: Template, egress: U8, ceiling: float, highest: float, free: Bool
    ) -> Worth:
        weight = np.ones(len(self.usual))
        kept, best = egress.copy(), self.worth(egress)
        for number in range(ROUNDS):
            self._improve(template, egress, ceiling, free, weight, number)
            times = self.times(egress)
            if (worth := self._worth(times)) < best:
                best = worth
                kept[:] = egress
            if not worth.loses:
                break
            weight[self._slower(times)] *= AGAIN
            ceiling = max(ceiling, highest)
        egress[:] = kept
        return best

    def separate(self, template: Template, egress: U8, free: Bool) -> None:
        """Rings meet no more than they must. `free` bool[I]: items that change first."""
        if not self.demand.ring.any():
            return
        if self.view is not None and self.view.height > 1:
            separate_rings(self.fabric, self.view, self.demand, ~free, egress)
        if self._rings_at_bound(egress):
            return
        nothing = np.zeros(len(self.demand.collective))
        tables = self._tables(template, egress, nothing, np.inf)
        if tables is None or not tables.sums.state[OVER]:
            return
        for may_move in (free, np.ones_like(free)):
            if tables.sums.state[OVER] and may_move.any():
                self._search(tables, may_move & self.demand.ring, None, RING_TRIES, 0.0, 0.0, 1)
        moved = tables.log.moved >= 0  # not the exceptions that serve other collectives
        give_back(tables, moved, 0.0)

    def _rings_at_bound(self, egress: U8) -> bool:
        crossed = paths_of(self.fabric, self.demand, egress)[self.demand.ring]
        carried = np.bincount(crossed[crossed >= 0], minlength=self.fabric.channels)
        return bool((carried <= self.limit).all())

    def return_unneeded(self, template: Template, egress: U8, ceiling: float) -> None:
        """Entries become the template's that gain no more than an exception costs."""
        tables = self._tables(template, egress, self._prices(np.ones(len(self.usual))), ceiling)
        if tables is not None:
            everything = np.ones(len(self.demand.leaf), np.bool_)
            give_back(tables, everything, self._exception)

    @property
    def _exception(self) -> float:
        return PRICE / (self.demand.jobs + FEW)

    def times(self, egress: U8) -> F64:
        """float64[P]: the mean time of each collective over jobs, on the tables `egress`."""
        return times_of(contention_of(self.fabric, self.width, self.demand, egress), self.whole)

    def _prices(self, weight: F64) -> F64:
        """float64[G]: what the norm of each phase costs."""
        demand = self.demand
        prices: F64 = (weight / self.usual)[demand.collective] / demand.jobs * demand.mean
        return prices

    def _improve(
        self,
        template: Template,
        egress: U8,
        ceiling: float,
        free: Bool,
        weight: F64,
        number: int,
    ) -> None:
        tables = self._tables(template, egress, self._prices(weight), ceiling)
        if tables is None:
            return
        jobs, items = self.demand.jobs, int(np.count_nonzero(free))
        tries = max(min(LEAST_TRIES, ENOUGH * items), TRIES_PER_ITEM * items)
        tries = min(TRIES, tries) // (2 if number else 1)
        self._search(tables, free, weight, tries, self._exception, WARMTH / jobs, number + 2)
        give_back(tables, free, self._exception)

    def _search(
        self,
        tables: Tables,
        free: Bool,
        weight: F64 | None,
        tries: int,
        price: float,
        warmth: float,
        seed: int,
    ) -> None:
        demand = self.demand
        phases = np.empty(0, np.int32)
        if weight is not None:  # those in which a message may move
            may = np.zeros(len(demand.collective), np.bool_)
            item = np.repeat(np.arange(len(demand.leaf)), np.diff(demand.use))
            may[demand.use_phase[free[item]]] = True
            phases = np.flatnonzero(may).astype(np.int32)
        every = np.arange(len(self.usual) + 1)
        first = np.searchsorted(demand.collective[phases], every).astype(np.int64)
        counts = np.ones(len(self.usual)) if weight is None else weight
        search(tables, phases, first, counts, free, tries, price, warmth, seed)

    def _tables(self, template: Template, egress: U8, prices: F64, ceiling: float) -> Tables | None:
        """None where the fabric is too large to look at single ways."""
        ways = ways_of(self.fabric, template.graph, template.cache)
        if ways is None:
            return None
        path = paths_of(self.fabric, self.demand, egress)
        sums = sums_of(self.demand, path, self.width, self.limit, prices, ceiling)
        log = new_log(self.demand, self.fabric.switches, path.shape[1], DEPTH)
        return Tables(self.demand, ways, sums, path, egress, template.egress, log)


def _width(fabric: Fabric) -> F64:
    width: F64 = fabric.channel_rate.astype(np.float64) / float(fabric.terminal_rate.max())
    return width
