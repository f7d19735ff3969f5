"""Brings plans into force by the method that `choose_update` chooses.

Routing keys and five-phase updates are parts of the pass, no services that can be deleted: a
protocol that both fit has nineteen methods, which say less than two names.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sar_agent.agent.decide import REPAIRS, Reason
from sar_agent.agent.update_strategy import UpdateChoice, UpdateContext, UpdateMethod, choose_update
from sar_agent.check.transition import Way
from sar_agent.config.update import UpdateConfig
from sar_agent.errors import Unserved
from sar_agent.five_phase.driver import FivePhase, RunNotBegun
from sar_agent.five_phase.messages import Phase
from sar_agent.five_phase.shelter import moves, no_shelter, with_shelter_of
from sar_agent.install.changes import table_changes
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.install.transit import NotSafe
from sar_agent.jobs.record import JobRecord

log = logging.getLogger(__name__)


class Updates:
    """`listens`: whether this process hears subscribers; they cannot acknowledge otherwise."""

    def __init__(self, config: UpdateConfig, five_phase: FivePhase, *, listens: bool) -> None:
        self.config, self.five_phase, self.listens = config, five_phase, listens
        self.coordinator, self.metrics = five_phase.coordinator, five_phase.metrics
        self.shelter_owed = False
        """Whether the shelter in force is that of another fabric."""

    def wait_before_planning(self, jobs: int, reason: Reason) -> str:
        """Why a plan made now could not be installed; empty where it could."""
        if self.config.mode != "window" or reason in REPAIRS:
            return ""
        choice = choose_update(self.config, None, UpdateContext(jobs=jobs), datetime.now())
        return choice.why if choice.how is UpdateMethod.WAIT else ""

    def keep_shelter(self, plan: Plan, before: InForce) -> Plan:
        """The plan with the shelter that is in force, where subscribers are to be moved there: it
        must not change under them. The plan itself where that does not matter, or does not fit."""
        if self.config.mode != "five-phase" or not self.coordinator.state.members:
            return plan
        self.five_phase.refresh_subscribers()
        changed = moves(before.routes, plan.routes)
        if self._obstacle(plan, before) or not (changed.base and changed.shelter):
            return plan
        return with_shelter_of(plan, before.routes) or plan

    def _obstacle(self, plan: Plan, before: InForce) -> str:
        """Why there can be no five-phase update to the plan; empty where there can."""
        state = self.coordinator.state
        if state.phase in (Phase.UNPATH, Phase.REPATH):
            return f"update {state.update} is not over"
        if state.members and not self.listens:
            return "only `sar-agent run` hears subscribers"
        if not before.status.ours:
            return "the routes in force are not the agent's"
        return no_shelter(plan.routes) if state.members else ""

    def choose(
        self,
        plan: Plan,
        before: InForce,
        records: Collection[JobRecord],
        *,
        urgent: bool,
        shelter_owed: bool,
    ) -> UpdateChoice:
        """How an examined plan comes into force. `shelter_owed`: it keeps the shelter of another
        plan. Raises `NotSafe` or `Unserved` where it must not be installed."""
        state, now = self.coordinator.state, self.coordinator.clock()
        changed = moves(before.routes, plan.routes)
        obstacle = self._obstacle(plan, before)
        if state.members and not obstacle and changed.base and changed.shelter:
            obstacle = "the shelter in force (LID offset 1) does not fit the plan's fabric"
        covered = {
            member.job
            for member in state.members.values()
            if not state.uncovered(member.job, member.uid, now, self.coordinator.rules)
        }
        site = UpdateContext(
            jobs=len(records),
            subscribers=len(state.members),
            uncovered=sum(not covered & set(record.numbers) for record in records),
            on_shelter=sum(member.offset == 1 for member in state.members.values()),
            base_changes=changed.base > 0,
            shelter_changes=changed.shelter > 0,
            entries=table_changes(plan.fabric, before.routes, plan.routes).entries,
            urgent=urgent,
            obstacle=obstacle,
            known_in=max(0.0, self.coordinator.all_known_at - now),
        )
        choice = choose_update(self.config, plan.transition, site, datetime.now())
        if choice.how is UpdateMethod.REFUSE:
            self.metrics.updates.labels("none", "refused").inc()
            if not site.base_changes:
                self.shelter_owed = False  # until the next plan: what is in force serves
            if plan.transition and plan.transition.way is Way.UNSAFE:
                raise NotSafe(plan.transition, choice.why)
            raise Unserved(choice.why)
        if choice.how is not UpdateMethod.WAIT:
            self.shelter_owed = shelter_owed and choice.how is UpdateMethod.FIVE_PHASE
        return choice

    @contextmanager
    def under_way(self, choice: UpdateChoice, generation: int) -> Iterator[None]:
        """Around the install of a generation by the method chosen. Raises `SarError`."""
        how = choice.how
        with ExitStack() as run:
            if how is UpdateMethod.FIVE_PHASE:
                try:
                    run.enter_context(self.five_phase.phases(generation))
                except RunNotBegun as error:
                    if not choice.urgent:
                        raise
                    log.warning(
                        "%s; the repair is installed without phases, since it is proved safe", error
                    )
                    how = UpdateMethod.DIRECT
            if how is not UpdateMethod.FIVE_PHASE:
                self.five_phase.pop_summary()  # an earlier run is not this decision's
            yield
        if how is not UpdateMethod.FIVE_PHASE:  # which counts its runs itself
            self.metrics.updates.labels(how.value, "installed").inc()

    def pop_summary(self) -> dict[str, Any] | None:
        """The five-phase update that the last decision made, if it did; returned once."""
        summary = self.five_phase.pop_summary()
        return asdict(summary) if summary.update else None

    def end_run(self) -> str:
        """End a five-phase update that was left behind; why nothing may be installed, or empty."""
        unfinished = self.five_phase.end_run()
        return unfinished.why if unfinished.blocks else ""
