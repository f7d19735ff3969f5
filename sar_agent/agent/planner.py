"""Which routes come next: the last ones with the least change, or all of them from scratch.

Rerouting from the last routes is quick and leaves most entries alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

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
from sar_agent.routing.updn import Updn
from sar_agent.services.keys.pool import KeyPool
from sar_agent.util.stages import stage

log = logging.getLogger(__name__)


Shelter = tuple[bytes, Routes]
"""Routes for LID offset 1, with the digest of their fabric."""


@dataclass(frozen=True)
class _Frame:
    """What a plan is made for, and from."""

    generation: int
    fabric: Fabric
    mix: JobMix
    last: Plan | None
    shelter: Shelter | None
    keys: Mapping[int, KeyRows]
    """The routing keys, by LID offset."""
    capped_from: Routes | None = None
    """Tables of which at most `update.max_changed_entries` entries may change."""

    @cached_property
    def base(self) -> Routes | None:
        """The engine's own routes of the last plan: LID offset 0."""
        return replace(base_of(self.last.routes), senders=None) if self.last else None


class Planner:
    """Makes plans, each from the one before where the engine can."""

    def __init__(self, config: Config, engine: Engine, pool: KeyPool | None = None) -> None:
        self.config, self.engine, self.pool = config, engine, pool
        self.options = Options.of(config.agent)
        self._updn: tuple[bytes, Routes] | None = None
        """The shelter that was made last, with the digest of its fabric."""

    def plan(
        self,
        generation: int,
        fabric: Fabric,
        mix: JobMix,
        last: Plan | None = None,
        shelter: Shelter | None = None,
        capped_from: Routes | None = None,
    ) -> Plan:
        """A plan with the routing keys or, where it fails its checks with them, without. Its
        routes, check and measures start from the `last` plan, in force or not. `shelter` is kept
        on its fabric. `capped_from` are the tables in force on `fabric`, of which at most
        `update.max_changed_entries` entries are changed, where that can be; without, all may be.
        Raises `CheckFailed`, `Unserved`, or `InputError` for a fabric in several
        pieces."""
        with stage("route"):
            require_connected(fabric)  # engines take that for granted
            self._read_partitions(fabric, mix)
        keys = self.pool.rows(fabric) if self.pool else {}
        frame = _Frame(generation, fabric, mix, last, shelter, keys, capped_from)
        try:
            plan = self._plan(frame)
        except CheckFailed as error:
            if not keys or not self.pool:
                raise
            log.warning("%s; planning without routing keys", error)
            self.pool.lose_all(str(error))
            plan = self._plan(replace(frame, keys={}))
        for remark in plan.routes.remarks:
            if not last or remark not in last.routes.remarks:
                log.warning("%s", remark)
        return plan

    def _plan(self, frame: _Frame) -> Plan:
        with stage("route"):
            routes, kept = self._routes(frame)
            routes = self._capped(frame, routes)
        try:
            return self._checked(frame, routes)
        except (CheckFailed, Unserved) as error:
            if not kept:
                raise
            log.warning("%s; computing all routes from scratch", error)
        with stage("route"):
            routes = self.engine.route(frame.fabric, frame.mix, self.options)
        return self._checked(frame, routes)

    def plan_keys(
        self,
        generation: int,
        keys: Mapping[int, KeyRows],
        in_force: Plan,
        shelter: Shelter | None = None,
    ) -> Plan:
        """The plan `in_force` with other keys, and otherwise unchanged. Raises `CheckFailed`."""
        fabric, mix = in_force.fabric, in_force.mix
        frame = _Frame(generation, fabric, mix, in_force, shelter, keys)
        return self._stacked(frame, base_of(in_force.routes))

    def forget(self) -> None:
        """Begin with a new engine: an unforeseen error may have interrupted this one."""
        self.engine, self._updn = load_engine(self.engine.name), None

    def _read_partitions(self, fabric: Fabric, mix: JobMix) -> None:
        """Read the policy for each plan, since the file may change, and jobs may be partitions."""
        if path := self.config.agent.ib_partitions_file:
            partitions, notes = read_partitions(Path(path), fabric, mix)
            self.options = replace(self.options, partitions=partitions)
            for note in notes[:5]:
                log.warning("%s", note)

    def _checked(self, frame: _Frame, routes: Routes) -> Plan:
        """The plan, with the lanes of the last one where they suffice, else with new ones."""
        fabric, last, base = frame.fabric, frame.last, frame.base
        laid = last and base and with_levels_of(base, last.fabric, routes, fabric, self.options)
        if not laid and base and base.virtual_lanes == 1:
            laid = routes  # the check finds out soonest whether one lane is still enough
        try:
            if laid:
                return self._stacked(frame, laid)
        except CreditLoop:
            if laid is routes and routes.virtual_lanes > 1:
                raise
        with stage("route"):
            laid = with_lanes(routes, fabric, frame.mix, self.options)
        return self._stacked(frame, laid)

    def _stacked(self, frame: _Frame, routes: Routes) -> Plan:
        """The plan of `routes` for offset 0, with shelter and keys beside them."""
        own_lane, fabric = self.options.reserve_lane, frame.fabric
        routes = replace(routes, senders=None)  # to be proved again
        shelter = self._shelter_for(frame, routes)

        def plan(stacked: Routes) -> Plan:
            return make_plan(frame.generation, fabric, frame.mix, stacked, frame.last)

        try:
            return plan(stack(routes, shelter, fabric.lmc, frame.keys, own_lane=own_lane))
        except CreditLoop:
            if own_lane or not shelter:
                raise
        return plan(stack(routes, None, fabric.lmc, frame.keys))

    def _capped(self, frame: _Frame, routes: Routes) -> Routes:
        """Routes that change at most `update.max_changed_entries` entries, where there are any."""
        most = self.config.update.max_changed_entries
        if not most or frame.capped_from is None:
            return routes
        base = base_of(frame.capped_from)
        if base.egress.shape != routes.egress.shape or routes.entries_changed(base) <= most:
            return routes
        before = PreviousRoutes(frame.fabric, frame.mix, base)
        return keep_unchanged_rows(before, frame.fabric, frame.mix, routes, self.options, most)

    def _shelter_for(self, frame: _Frame, base: Routes) -> Routes | None:
        """Routes for LID offset 1, where the subnet has one and a lane is left for it."""
        fabric, lanes = frame.fabric, base.virtual_lanes + int(self.options.reserve_lane)
        if fabric.lmc == 0 or base.hop_lane is not None or lanes > max(2, self.options.max_lanes):
            return None
        for known in (frame.shelter, self._updn):
            if known and known[0] == fabric.digest:
                return known[1]
        self._updn = fabric.digest, Updn().route(fabric, JobMix(()), self.options)
        return self._updn[1]

    def _routes(self, frame: _Frame) -> tuple[Routes, bool]:
        """The engine's routes, and whether they were grown from the last ones."""
        fabric, mix, last, base = frame.fabric, frame.mix, frame.last, frame.base
        if last and base and isinstance(self.engine, Rerouting) and self.starts_from(base.engine):
            before = PreviousRoutes(last.fabric, last.mix, base)
            return self.engine.reroute(before, fabric, mix, self.options), True
        return self.engine.route(fabric, mix, self.options), False

    def starts_from(self, engine: str) -> bool:
        """Whether plans can start from routes of `engine`."""
        return isinstance(self.engine, Rerouting) and engine == self.engine.name


def shelter_of(plan: Plan) -> Shelter | None:
    """The shelter in a plan's tables; None where they have none."""
    routes = plan.routes
    if len(routes.egress) <= SHELTER:
        return None
    one = replace(routes, egress=routes.egress[SHELTER : SHELTER + 1], senders=None, mark=0)
    return plan.fabric.digest, replace(one, service_level=None, virtual_lanes=1, hop_lane=None)
