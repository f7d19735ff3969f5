"""From a plan to tables in force, in the way that `choose_update` chooses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sar_agent.agent.update_strategy import UpdateChoice, UpdateContext, UpdateMethod, choose_update
from sar_agent.check.transition import Way
from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unserved
from sar_agent.events.authority import Authority
from sar_agent.five_phase.coordinator import Coordinator
from sar_agent.five_phase.driver import FivePhase, Owners, RunNotBegun, RunSummary
from sar_agent.five_phase.messages import Phase
from sar_agent.five_phase.protocol import LeaseRules
from sar_agent.five_phase.shelter import moves, no_shelter, with_shelter_of
from sar_agent.five_phase.subscribers import Subscribers
from sar_agent.install.changes import table_changes
from sar_agent.install.plan import Plan
from sar_agent.install.transit import NotSafe
from sar_agent.jobs.record import JobRecord
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics

log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Updates:
    """`hears`: whether a door of this process hears subscribers; they cannot acknowledge else."""

    def __init__(
        self,
        config: Config,
        bridge: PluginClient,
        queue: Callable[[], Owners | None],
        metrics: Metrics,
    ) -> None:
        update = config.update
        self.config, self.metrics = update, metrics
        self.hears = False
        rules = LeaseRules(
            update.lease_seconds,
            update.deadline_seconds,
            lapsed_is_sheltered=update.lapsed_leases == "drop",
        )
        trace = Path(update.trace) if update.trace else None
        self.coordinator = Coordinator(config.agent.state_dir, rules, trace=trace)
        self.five_phase = FivePhase(
            self.coordinator, bridge, queue, metrics, config.agent.routes_path
        )
        self.shelter_owed = False
        """Whether the shelter in force is that of another fabric."""
        self.last = UpdateChoice(UpdateMethod.DIRECT, "")

    def subscribers(self, authority: Authority) -> Subscribers:
        """Those who speak at the door."""
        return Subscribers(self.coordinator, authority, self.metrics.subscribers.set)

    def wait_before_planning(self, jobs: int, urgent: bool) -> str:
        """Why no plan is worth making now: it could not be installed. Empty where one is."""
        if self.config.mode != "window" or urgent:
            return ""
        choice = choose_update(self.config, None, UpdateContext(jobs=jobs), _now())
        return choice.why if choice.how is UpdateMethod.WAIT else ""

    def prepare(
        self,
        plan: Plan,
        before: Routes | None,
        ours: bool,
        records: Iterable[JobRecord],
        urgent: bool,
        examined: Callable[[Plan], Plan] = lambda plan: plan,
    ) -> tuple[Plan, UpdateChoice]:
        """The plan as it can be installed, and how. `before` is in force (None: not known), `ours`
        whether the agent made it; `examined` has the verdict on another plan. Raises `NotSafe` or
        `Unserved` where it must not be."""
        five = self.config.mode == "five-phase"
        if five and self.coordinator.state.members:
            self.five_phase.look()
        state = self.coordinator.state
        changed = moves(before, plan.routes) if before else None
        obstacle = "" if ours and before else "the routes in force are not the agent's"
        if state.members and not self.hears:
            obstacle = "subscribers are heard by `sar-agent run` only"
        if state.phase in (Phase.UNPATH, Phase.REPATH):
            obstacle = f"update {state.update} is not over"
        if five and state.members and not obstacle and not (obstacle := no_shelter(plan.routes)):
            assert before and changed
            if changed.base and changed.shelter:
                kept = with_shelter_of(plan, before)
                if kept is None:
                    obstacle = "the shelter in force (LID offset 1) does not fit the plan's fabric"
                else:
                    plan = examined(kept)
        now = self.coordinator.clock()
        covered = {
            one.job
            for one in state.members.values()
            if not state.uncovered(one.job, one.uid, now, self.coordinator.rules)
        }
        jobs = list(records)
        site = UpdateContext(
            jobs=len(jobs),
            subscribers=len(state.members),
            uncovered=sum(not covered & set(record.numbers) for record in jobs),
            on_shelter=sum(one.offset == 1 for one in state.members.values()),
            base_changes=changed is None or changed.base > 0,
            shelter_changes=changed is None or changed.shelter > 0,
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
            self.shelter_owed = bool(
                choice.how is UpdateMethod.FIVE_PHASE
                and changed
                and changed.base
                and changed.shelter
            )
        return plan, choice

    def put(self, choice: UpdateChoice, generation: int, load: Callable[[], _T]) -> _T:
        """In force, by `load`. Raises `SarError`."""
        how = choice.how
        if how is UpdateMethod.FIVE_PHASE:
            try:
                return self.five_phase.install(generation, load)
            except RunNotBegun as error:
                if not choice.urgent:
                    raise
                log.warning("%s; the repair is installed without, as it is proved", error)
                how = UpdateMethod.DIRECT
        self.five_phase.told = RunSummary()
        found = load()
        self.metrics.updates.labels(how.value, "installed").inc()
        return found

    def told(self) -> dict[str, Any] | None:
        """Of the five-phase update that the last decision made, if it did; once."""
        told, self.five_phase.told = self.five_phase.told, RunSummary()
        return asdict(told) if told.update else None

    def settle(self) -> str:
        """See `FivePhase.settle`: why nothing may be installed, or nothing."""
        unfinished = self.five_phase.settle()
        return unfinished.why if unfinished.blocks else ""

    def know(self, jobs: Owners, looked_at: float) -> None:
        """See `FivePhase.know`; a full disk is no reason to fail."""
        with suppress(SarError):
            self.five_phase.know(jobs, looked_at)


def owners(records: Iterable[JobRecord]) -> Owners:
    """By the numbers that Slurm's hooks call jobs by."""
    return {number: record.uid for record in records for number in record.numbers}


def _now() -> datetime:
    return datetime.now()
