"""SAR+: close to the least load (or effective EFI) that shortest paths allow.

The order is SAR's (sar-2016, Algorithm 1): routes inside jobs first, then storage, then the rest.
`balanced_trees.py` grows a tree; `sar_plus_balance.py` chooses the order of trees and improves
them; `unused_routes.py` fills the entries that no job uses, the same whatever runs; `repair.py`
repairs tables after a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import moved_mix
from sar_agent.routing.annealing import annealed
from sar_agent.routing.demand_items import Objective
from sar_agent.routing.dfsssp import dfsssp_order
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.graph.shortest_path_dag import DagCache, new_cache
from sar_agent.routing.host_paths import HostPaths, host_paths
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.one_lane import one_lane_cache, with_fewest_lanes
from sar_agent.routing.repair import (
    SuspectEntries,
    all_entries,
    carry_over,
    entries_near_changed_hops,
    keep_in_dag,
    repair_rows,
    same_indices,
)
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.sar import destination_order
from sar_agent.routing.sar_plus_balance import DARK_WORTH, GOOD_ENOUGH, RouteBalance
from sar_agent.routing.shortest_paths import ShortestPaths
from sar_agent.routing.unused_routes import LevelTurns, spread_trees, terminal_rows, turns_of
from sar_agent.routing.weighted_trees import EVERYONE, grow
from sar_agent.util.beside import SecondProcessor, second_processor

ITEMS = 40_000
"""How many items may be placed again to come nearer the bound: some milliseconds on any fabric."""
IN_TURN = 80_000
"""How many more after a job change, all trees in turn: two rounds on 1,728 hosts, some 25 ms each;
on 11,664 a round is too long to wait for."""


SEARCH_WORTH = 1.02
"""How many times smaller the largest load must become for tables that a search made: they leave
less loaded channels less even."""


class _Last(NamedTuple):
    mark: int
    balance: RouteBalance
    """Its tables are those of the routes: a change begins with a copy."""


_marks = count(1)


class SarPlus:
    """Balances the load of all jobs doing all-to-all at once."""

    name = "sar-plus"
    summary = "trees grown source by source at marginal cost: least load inside running jobs"
    knows_jobs = True

    def __init__(self) -> None:
        self._last: _Last | None = None

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        began = time.perf_counter()
        shortest = ShortestPaths(fabric)

        def balanced(cache: DagCache) -> tuple[U8, Callable[[], float], RouteBalance]:
            balance = _balanced(shortest, mix, options.objective, cache)
            return balance.egress, lambda: balance.score()[0], balance

        balance, found, some = with_fewest_lanes(shortest, balanced)
        balance, found = _annealed(balance, found)
        fill_loop_free(shortest, balance.egress, found, None if some else balance.cache)
        return self._keep(balance, mix.digest(fabric), began)

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """Routes that keep the entries of `before` that still hold. A failed link changes the
        entries over it, a job that starts or ends changes its own; then the most loaded channels
        are relieved."""
        began = time.perf_counter()
        balance = self._balance_of(before, options.objective)
        with second_processor() as second:
            copy = second.start(balance.egress.copy)
            digest = second.start(lambda: mix.digest(fabric))
            if before.fabric.digest != fabric.digest:
                balance = repaired_balance(balance, fabric, copy, second)
                # A repair is installed first; loaded channels can wait for the next call.
                balance.follow(mix)
            else:
                balance.egress = copy()
                balance.follow(mix, ITEMS, IN_TURN)
                if before.routes.virtual_lanes == 1 and not len(balance.cache.place):
                    # Some of the paths that jobs left may close a loop.
                    balance = _in_one_lane(balance)
            return self._keep(balance, digest(), began)

    def _balance_of(self, made: PreviousRoutes, objective: Objective) -> RouteBalance:
        last, self._last = self._last, None  # it is about to change
        if last and last.mark == made.routes.mark and last.balance.objective == objective:
            return last.balance
        shortest, egress = ShortestPaths(made.fabric), made.routes.egress[0]
        cache = _cache_of(made, shortest)
        return RouteBalance(shortest, made.mix, egress, objective, cache, counted=False)

    def _keep(self, balance: RouteBalance, jobs_digest: bytes, began: float) -> Routes:
        routes = Routes(
            engine=self.name,
            fabric_digest=balance.fabric.digest,
            egress=balance.egress[None],
            jobs_digest=jobs_digest,
            seconds=time.perf_counter() - began,
            mark=next(_marks),
            turn_order=balance.cache.place,
        )
        self._last = _Last(routes.mark, balance)
        return routes


def _balanced(
    shortest: ShortestPaths, mix: JobMix, objective: Objective, cache: DagCache
) -> RouteBalance:
    """Tables for all host ports by the shortest paths that `cache` keeps."""
    fabric = shortest.fabric
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    balance = RouteBalance(shortest, mix, egress, objective, cache)
    turns = turns_of(fabric)
    spread_trees(
        balance.graph,
        cache,
        turns,
        balance.work.root,
        balance.work.last_port,
        terminal_rows(fabric, turns),
        egress,
    )
    balance.place(balance.terminals)
    balance.improve(ITEMS)
    _no_worse_than_others(balance, turns)
    _storage(balance)
    return balance


def _no_worse_than_others(balance: RouteBalance, turns: LevelTurns) -> None:
    """Makes sar-plus never worse than other engines. On small fabrics these can be lucky: then the
    best tables are improved instead. Where SAR leaves less dark fiber, so does sar-plus. If the
    peak is near the least possible and no fiber is dark, the other engines are not run; and they
    end as soon as their peak is so high that their tables would change nothing."""
    own, dark = balance.score(), balance.dark
    near = own[0] <= GOOD_ENOUGH * balance.least_peak()
    if near and not dark:
        return
    most = own[0] * (DARK_WORTH if dark else 1.0)
    order, who = destination_order(balance.fabric, balance.mix)
    has_job = np.isin(order, balance.terminals)
    as_sar = order[has_job], who[has_job]
    sar = _grown(balance, *as_sar, np.inf if dark else most)
    dfsssp = None if near else _grown(balance, *dfsssp_order(balance.fabric), most)
    others = [other for other in (sar, _spread(balance, turns), dfsssp) if other]
    best = min(others, key=RouteBalance.score)
    peak = best.score()[0]
    if best.score() < own:
        best.improve(ITEMS)
        balance.egress[balance.terminals] = best.egress[balance.terminals]
        balance.units[:] = best.units
    if balance.dark and (sar := sar or _grown(balance, *as_sar, np.inf)):
        balance.reduce_dark_fiber(sar.dark, peak)


def _annealed(balance: RouteBalance, found: HostPaths) -> tuple[RouteBalance, HostPaths]:
    """The balance after a search for a smaller largest load, and the dependencies of its tables;
    what was given where that is near the least possible, where the search gains too little, or
    where it would need a second lane."""
    enough, peak = GOOD_ENOUGH * balance.least_peak(), balance.score()[0]
    channels = balance.fabric.channels
    if peak <= enough or len(balance.cache.tag) <= len(balance.fabric.leaves):
        return balance, found
    parts = balance.graph, balance.cache, balance.by_port, balance.work, balance.share[:channels]
    egress = annealed(*parts, balance.terminals, enough, balance.egress)
    if egress is balance.egress:
        return balance, found
    other = balance.beside(egress)
    if SEARCH_WORTH * other.score()[0] > peak:
        return balance, found
    _storage(other)
    paths = host_paths(other.shortest, other.egress)
    return (other, paths) if paths.one_lane() or not found.one_lane() else (balance, found)


def _spread(balance: RouteBalance, turns: LevelTurns) -> RouteBalance:
    """The jobs on D-mod-k's tables."""
    egress, work = np.full_like(balance.egress, NO_ROUTE), balance.work
    rows = terminal_rows(balance.fabric, turns)
    rows = rows[np.isin(rows, balance.terminals)]
    spread_trees(balance.graph, balance.cache, turns, work.root, work.last_port, rows, egress)
    return balance.beside(egress)


def _grown(balance: RouteBalance, order: I32, who: U8, most: float) -> RouteBalance | None:
    """The jobs on trees grown by weights, as SAR and DFSSSP grow them; None if that loads a channel
    more than `most`."""
    other = balance.beside(np.full_like(balance.egress, NO_ROUTE))

    def too_high(terminals: U32) -> bool:
        other.put_back(terminals[np.isin(terminals, balance.terminals)])
        return other.score()[0] > most

    weight = np.zeros(balance.fabric.channels, np.int64)
    parts = balance.shortest, balance.cache, balance.mix
    return other if grow(*parts, order, who, weight, other.egress, too_high) else None


def _storage(balance: RouteBalance) -> None:
    """Grows the trees of storage, then of other terminals, as SAR does (Algorithm 1, lines 11-16):
    every terminal's route counts, on top of the jobs' routes."""
    fabric, mix = balance.fabric, balance.mix
    order, who = destination_order(fabric, mix)
    rest = order[who == EVERYONE].astype(np.uint32)
    if not len(rest):
        return
    routes = balance
    if balance.objective != "routes":
        routes = RouteBalance(balance.shortest, mix, balance.egress, "routes")
        routes.put_back(routes.terminals)
    grow(
        balance.shortest,
        balance.cache,
        mix,
        rest,
        np.full(len(rest), EVERYONE, np.uint8),
        routes.units[0, : fabric.channels].copy(),
        balance.egress,
    )


def _cache_of(made: PreviousRoutes, shortest: ShortestPaths) -> DagCache | None:
    """The paths to which these routes keep; where that is not known, those of one lane if they keep
    to these. None: all shortest paths."""
    fabric, order = made.fabric, made.routes.turn_order
    if order is not None:
        return new_cache(fabric, order) if len(order) else None
    if made.routes.virtual_lanes > 1 or shortest.rise_then_fall:
        return None
    cache = one_lane_cache(shortest)
    if cache and _keep_in_dag(shortest, cache, made.routes.egress[0].copy()):
        return None
    return cache


def _keep_in_dag(shortest: ShortestPaths, cache: DagCache, egress: U8) -> int:
    """Changes the host ports' entries along channels that `cache` does not keep; how many."""
    fabric = shortest.fabric
    turns, root_of = turns_of(fabric), fabric.destination_switch.astype(np.uint32)
    rows, sends = terminal_rows(fabric, turns), fabric.terminals_at > 0
    return int(keep_in_dag(shortest.graph, cache, turns, root_of, rows, sends, egress))


def repaired_balance(
    before: RouteBalance, fabric: Fabric, copy: Callable[[], U8], second: SecondProcessor
) -> RouteBalance:
    """The balance of the same jobs on a changed fabric: every destination is reachable again, and
    only entries that had to move have moved.

    Terminals that are gone leave their jobs. `copy` returns the tables of `before`, which must not
    be used any more.
    """
    old = before.fabric
    turns = second.start(lambda: turns_of(fabric))
    mix = moved_mix(before.mix, old, fabric)
    cache = None
    if len(before.cache.place) and same_indices(old, fabric):
        cache = new_cache(fabric, before.cache.place)
    shortest = ShortestPaths(fabric, before.shortest)
    egress = carry_over(old, fabric, copy())
    balance_of = partial(RouteBalance, shortest, mix, egress, before.objective, cache)
    balanced = second.start(partial(balance_of, counted=False))
    wanted = np.ones(fabric.destinations, np.bool_)
    wanted[: fabric.terminals] = fabric.is_host_port
    suspects, whole = _suspect_entries(before.shortest, shortest)
    repair_rows(
        shortest.graph,
        shortest.hops,
        shortest.neighbours,
        turns(),
        fabric.destination_switch.astype(np.uint32),
        fabric.destination_port,
        suspects,
        wanted,
        whole,
        egress,
    )
    if cache:
        _keep_in_dag(shortest, cache, egress)
    balance = _in_one_lane(balanced())
    for d in np.flatnonzero(~fabric.is_host_port):
        switch = fabric.terminal_switch[d]
        egress[d] = egress[fabric.terminals + switch]
        egress[d, switch] = fabric.terminal_switch_port[d]
    return balance


def _in_one_lane(balance: RouteBalance) -> RouteBalance:
    """The same balance, or, where its routes close a credit loop that others do not, that of
    tables with entries moved to such."""
    shortest, egress = balance.shortest, balance.egress
    if shortest.rise_then_fall or host_paths(shortest, egress).one_lane():
        return balance
    cache = one_lane_cache(shortest)
    if cache is None:
        return balance
    _keep_in_dag(shortest, cache, egress)
    return RouteBalance(shortest, balance.mix, egress, balance.objective, cache, counted=False)


def _suspect_entries(before: ShortestPaths, after: ShortestPaths) -> tuple[SuspectEntries, Bool]:
    """For `repair_rows`: the entries that may be wrong, and bool[D], the rows to examine whole."""
    old, new = before.fabric, after.fabric
    if not same_indices(old, new) or before.neighbours.shape != after.neighbours.shape:
        return all_entries(new.switches), np.ones(new.destinations, np.bool_)
    dead = np.flatnonzero((before.neighbours != after.neighbours).any(axis=1)).astype(np.uint32)
    whole = (new.destination_switch != old.destination_switch) | (
        new.destination_port != old.destination_port
    )
    whole[: new.terminals] |= new.is_host_port & ~old.is_host_port
    return entries_near_changed_hops(after.graph, before.hops, after.hops, dead), whole
