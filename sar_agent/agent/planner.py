"""Which routes come next: the last ones with the least change, or all of them from scratch.

Rerouting from the last routes is quick and leaves most entries alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, CreditLoop, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import require_connected
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from sar_agent.jobs.partition_policy import read_partitions
from sar_agent.routing import Engine, Options, PreviousRoutes, Rerouting, Routes, load_engine
from sar_agent.routing.lanes import with_lanes, with_levels_of
from sar_agent.routing.lid_offsets import SHELTER, KeyRows, base_of, stack
from sar_agent.routing.minimise_changes import keep_unchanged_rows
from sar_agent.routing.repair import same_indices
from sar_agent.routing.updn import Updn
from sar_agent.util.stages import stage

log = logging.getLogger(__name__)


class KeySource(Protocol):
    """The routing keys that plans hold."""

    def rows(self, fabric: Fabric) -> Mapping[int, KeyRows]:
        """The keys' rows for `fabric`, by LID offset."""
        ...

    def lose_all(self, why: str) -> None:
        """No plan passes its checks with the keys."""
        ...


class NoKeys:
    """A `KeySource` without keys."""

    def rows(self, fabric: Fabric) -> Mapping[int, KeyRows]:
        """No rows."""
        return {}

    def lose_all(self, why: str) -> None:
        """There is nothing to lose."""


class Planner:
    """Makes plans, each from the one before where the engine can."""

    def __init__(self, config: Config, engine: Engine, keys: KeySource | None = None) -> None:
        self.config, self.engine, self.key_source = config, engine, keys or NoKeys()
        self.options = Options.of(config.agent)
        self._keys: Mapping[int, KeyRows] = {}
        """The routing keys of the plan that is being made, by LID offset."""
        self._last: Plan | None = None
        """The last plan, in force or not; the next plan's routes, check and measures start from
        it."""
        self._base: Routes | None = None
        """The engine's own routes of `_last`: LID offset 0."""
        self._shelter: tuple[bytes, Routes] | None = None
        """The shelter, with the digest of its fabric."""

    def plan(self, generation: int, fabric: Fabric, mix: JobMix) -> Plan:
        """A plan with the routing keys or, where it fails its checks with them, without. Raises
        `CheckFailed`, `Unserved`, or `InputError` for a fabric in several pieces."""
        try:
            return self._plan(generation, fabric, mix)
        except CheckFailed as error:
            if not self._keys:
                raise
            log.warning("%s; planning without routing keys", error)
            self.key_source.lose_all(str(error))
            return self._plan(generation, fabric, mix)

    def _plan(self, generation: int, fabric: Fabric, mix: JobMix) -> Plan:
        with stage("route"):
            require_connected(fabric)  # engines take that for granted
            self._read_partitions(fabric, mix)
            self._keys = self.key_source.rows(fabric)
            routes, kept = self._routes(fabric, mix)
            routes = self._capped(fabric, mix, routes)
        try:
            plan = self._checked(generation, fabric, mix, routes)
        except (CheckFailed, Unserved) as error:
            if not kept:
                raise
            log.warning("%s; computing all routes from scratch", error)
            with stage("route"):
                routes = self.engine.route(fabric, mix, self.options)
            plan = self._checked(generation, fabric, mix, routes)
        for remark in plan.routes.remarks:
            if not self._last or remark not in self._last.routes.remarks:
                log.warning("%s", remark)
        self.adopt(plan)
        return plan

    def plan_keys(self, generation: int, keys: Mapping[int, KeyRows], in_force: Plan) -> Plan:
        """The plan `in_force` with other keys, and otherwise unchanged; `adopt` it once it has been
        installed. Raises `CheckFailed`."""
        base = base_of(in_force.routes)
        return self._stacked(generation, in_force.fabric, in_force.mix, base, keys, in_force)

    @property
    def last(self) -> Plan | None:
        """The last plan, in force or not."""
        return self._last

    def adopt(self, plan: Plan) -> None:
        """Start from `plan` next: what came into force may be less than what was planned; after a
        restart it is what is in force."""
        self._last, self._base = plan, replace(base_of(plan.routes), senders=None)

    def forget(self) -> None:
        """Forget earlier plans, in the engine, too: an unforeseen error may have interrupted them.
        The next plan starts from nothing, or from one that was adopted."""
        self.engine = load_engine(self.engine.name)
        self._last = self._base = self._shelter = None

    def _read_partitions(self, fabric: Fabric, mix: JobMix) -> None:
        """Read the policy for each plan, since the file may change, and jobs may be partitions."""
        if path := self.config.agent.ib_partitions_file:
            partitions, notes = read_partitions(Path(path), fabric, mix)
            self.options = replace(self.options, partitions=partitions)
            for note in notes[:5]:
                log.warning("%s", note)

    def _checked(self, generation: int, fabric: Fabric, mix: JobMix, routes: Routes) -> Plan:
        """The plan, with the lanes of the last one where they suffice, else with new ones."""
        before, base = self._last, self._base

        def plan(laid: Routes) -> Plan:
            return self._stacked(generation, fabric, mix, laid, self._keys, before)

        laid = before and base and with_levels_of(base, before.fabric, routes, fabric, self.options)
        if not laid and base and base.virtual_lanes == 1:
            laid = routes  # the check finds out soonest whether one lane is still enough
        try:
            if laid:
                return plan(laid)
        except CreditLoop:
            if laid is routes and routes.virtual_lanes > 1:
                raise
        with stage("route"):
            laid = with_lanes(routes, fabric, mix, self.options)
        return plan(laid)

    def _stacked(
        self,
        generation: int,
        fabric: Fabric,
        mix: JobMix,
        routes: Routes,
        keys: Mapping[int, KeyRows],
        before: Plan | None,
    ) -> Plan:
        """The plan of `routes` for offset 0, with shelter and keys beside them."""
        own_lane, routes = (
            self.options.reserve_lane,
            replace(routes, senders=None),
        )  # to be proved again
        shelter = self._shelter_beside(routes, fabric)
        try:
            stacked = stack(routes, shelter, fabric.lmc, keys, own_lane=own_lane)
            return make_plan(generation, fabric, mix, stacked, before)
        except CreditLoop:
            if own_lane or not shelter:
                raise
        stacked = stack(routes, None, fabric.lmc, keys)
        return make_plan(generation, fabric, mix, stacked, before)

    def _capped(self, fabric: Fabric, mix: JobMix, routes: Routes) -> Routes:
        """Routes that change at most `update.max_changed_entries` entries, where there are any."""
        most, last, base = self.config.update.max_changed_entries, self._last, self._base
        if not (most and last and base) or not same_indices(last.fabric, fabric):
            return routes
        if base.egress.shape != routes.egress.shape or routes.entries_changed(base) <= most:
            return routes
        before = PreviousRoutes(last.fabric, last.mix, base)
        return keep_unchanged_rows(before, fabric, mix, routes, self.options, most)

    def _shelter_beside(self, base: Routes, fabric: Fabric) -> Routes | None:
        """Routes for LID offset 1, where the subnet has one and a lane is left for it."""
        lanes = base.virtual_lanes + int(self.options.reserve_lane)
        if fabric.lmc == 0 or base.hop_lane is not None or lanes > self.options.max_lanes:
            return None
        if not self._shelter or self._shelter[0] != fabric.digest:
            self._shelter = fabric.digest, Updn().route(fabric, JobMix(()), self.options)
        return self._shelter[1]

    def _routes(self, fabric: Fabric, mix: JobMix) -> tuple[Routes, bool]:
        """The engine's routes, and whether they were grown from the last ones."""
        last, base = self._last, self._base
        same = last and last.fabric.digest == fabric.digest
        if same and base and base.regular:
            return replace(base, jobs_digest=mix.digest(fabric)), False
        if last and base and isinstance(self.engine, Rerouting) and self._is_own(base):
            before = PreviousRoutes(last.fabric, last.mix, base)
            return self.engine.reroute(before, fabric, mix, self.options), True
        return self.engine.route(fabric, mix, self.options), False

    def _is_own(self, routes: Routes) -> bool:
        """Whether the tables are the engine's: lanes may have needed others."""
        return routes.engine == self.engine.name

    def needs_start(self, engine: str) -> bool:
        """Whether the next plan would start from nothing, and could start from routes of
        `engine`."""
        starts = isinstance(self.engine, Rerouting) and engine == self.engine.name
        return starts and self._last is None

    def keep_shelter(self, plan: Plan | None) -> None:
        """Use the shelter of `plan`, which was amended, on its fabric: subscribers may be on it.
        None: make another with the next plan."""
        self._shelter = None
        routes = plan.routes if plan else None
        if plan and routes and len(routes.egress) > SHELTER:
            one = replace(routes, egress=routes.egress[SHELTER : SHELTER + 1], senders=None, mark=0)
            one = replace(one, service_level=None, virtual_lanes=1, hop_lane=None)
            self._shelter = plan.fabric.digest, one
