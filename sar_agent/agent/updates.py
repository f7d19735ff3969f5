"""Brings plans into force by the method that `choose_update` chooses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar

from sar_agent.agent.update_strategy import UpdateChoice, UpdateContext, UpdateMethod, choose_update
from sar_agent.check.transition import Way
from sar_agent.config.update import UpdateConfig
from sar_agent.errors import SarError, Unserved
from sar_agent.five_phase.coordinator import Coordinator
from sar_agent.five_phase.driver import FivePhase, Owners, RunNotBegun
from sar_agent.five_phase.messages import Phase
from sar_agent.five_phase.shelter import moves, no_shelter, with_shelter_of
from sar_agent.install.changes import table_changes
from sar_agent.install.plan import Plan
from sar_agent.install.transit import NotSafe
from sar_agent.jobs.record import JobRecord
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics

log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Updates:
    """`listens`: whether this process hears subscribers; they cannot acknowledge otherwise."""

    def __init__(
        self,
        config: UpdateConfig,
        coordinator: Coordinator,
        five_phase: FivePhase,
        metrics: Metrics,
        *,
        listens: bool,
    ) -> None:
        self.config, self.metrics, self.listens = config, metrics, listens
        self.coordinator, self.five_phase = coordinator, five_phase
        self.shelter_owed = False
        """Whether the shelter in force is that of another fabric."""
        self.last = UpdateChoice(UpdateMethod.DIRECT, "")

    def wait_before_planning(self, jobs: int, urgent: bool) -> str:
        """Why a plan made now could not be installed; empty where it could."""
        if self.config.mode != "window" or urgent:
            return ""
        choice = choose_update(self.config, None, UpdateContext(jobs=jobs), _now())
        return choice.why if choice.how is UpdateMethod.WAIT else ""

    def prepare(
        self,
        plan: Plan,
        before: Routes,
        ours: bool,
        records: Iterable[JobRecord],
        urgent: bool,
        examined: Callable[[Plan], Plan],
    ) -> tuple[Plan, UpdateChoice]:
        """The plan as it can be installed, and how. `before` is in force, `ours` says whether the
        agent made it, `examined` returns another plan with the verdict on its transition. Raises
        `NotSafe` or `Unserved` where the plan must not be installed."""
        five = self.config.mode == "five-phase"
        if five and self.coordinator.state.members:
            self.five_phase.refresh_subscribers()
        state = self.coordinator.state
        changed = moves(before, plan.routes)
        obstacle = "" if ours else "the routes in force are not the agent's"
        if state.members and not self.listens:
            obstacle = "only `sar-agent run` hears subscribers"
        if state.phase in (Phase.UNPATH, Phase.REPATH):
            obstacle = f"update {state.update} is not over"
        if five and state.members and not obstacle:
            obstacle = no_shelter(plan.routes)
            if not obstacle and changed.base and changed.shelter:
                kept = with_shelter_of(plan, before)
                if kept is None:
                    obstacle = "the shelter in force (LID offset 1) does not fit the plan's fabric"
                else:
                    plan = examined(kept)
        now = self.coordinator.clock()
        covered = {
            member.job
            for member in state.members.values()
            if not state.uncovered(member.job, member.uid, now, self.coordinator.rules)
        }
        jobs = list(records)
        site = UpdateContext(
            jobs=len(jobs),
            subscribers=len(state.members),
            uncovered=sum(not covered & set(record.numbers) for record in jobs),
            on_shelter=sum(member.offset == 1 for member in state.members.values()),
            base_changes=changed.base > 0,
            shelter_changes=changed.shelter > 0,
            entries=table_changes(plan.fabric, before, plan.routes).entries,
            urgent=urgent,
            obstacle=obstacle,
            known_in=max(0.0, self.coordinator.all_known_at - now),
        )
        choice = choose_update(self.config, plan.transition, site, _now())
        self.last = choice
        if choice.how is UpdateMethod.REFUSE:
            self.metrics.updates.labels("none", "refused").inc()
            if not site.base_changes:
                self.shelter_owed = False  # until the next plan: what is in force serves
            if plan.transition and plan.transition.way is Way.UNSAFE:
                raise NotSafe(plan.transition, choice.why)
            raise Unserved(choice.why)
        if choice.how is not UpdateMethod.WAIT:
            in_phases = choice.how is UpdateMethod.FIVE_PHASE
            self.shelter_owed = bool(in_phases and changed.base and changed.shelter)
        return plan, choice

    def put(self, choice: UpdateChoice, generation: int, load: Callable[[], _T]) -> _T:
        """Bring a prepared plan into force by `load`, and return its result. Raises `SarError`."""
        how = choice.how
        if how is UpdateMethod.FIVE_PHASE:
            try:
                return self.five_phase.install(generation, load)
            except RunNotBegun as error:
                if not choice.urgent:
                    raise
                log.warning(
                    "%s; the repair is installed without phases, since it is proved safe", error
                )
                how = UpdateMethod.DIRECT
        self.five_phase.take_summary()  # an earlier run is not this decision's
        result = load()
        self.metrics.updates.labels(how.value, "installed").inc()
        return result

    def take_summary(self) -> dict[str, Any] | None:
        """The five-phase update that the last decision made, if it did; returned once."""
        summary = self.five_phase.take_summary()
        return asdict(summary) if summary.update else None

    def end_run(self) -> str:
        """End a five-phase update that was left behind; why nothing may be installed, or empty."""
        unfinished = self.five_phase.end_run()
        return unfinished.why if unfinished.blocks else ""

    def queue_read(self, jobs: Owners, began: float) -> None:
        """The running jobs by a poll that began at `began`; a full disk is no reason to fail."""
        with suppress(SarError):
            self.five_phase.queue_read(jobs, began)


def _now() -> datetime:
    return datetime.now()
