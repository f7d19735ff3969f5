"""Updates that move subscribers to LID offset 1 before their tables change, and back afterwards.

The part of the pass that knows `five_phase/`: without both, and their lines in `build.py`,
updates go on without phases (`tests/unit/test_removals.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sar_agent.agent.observe_site import SiteObserver
from sar_agent.agent.update_strategy import UpdateChoice, UpdateContext, UpdateMethod
from sar_agent.agent.updates import Updates
from sar_agent.config.model import Config
from sar_agent.errors import Unserved
from sar_agent.events.authority import Authority
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, SubnetManager
from sar_agent.jobs.record import JobRecord
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.driver import FivePhase, RunNotBegun
from sar_agent.services.five_phase.messages import Phase
from sar_agent.services.five_phase.protocol import LeaseRules
from sar_agent.services.five_phase.shelter import moves, no_shelter, with_shelter_of
from sar_agent.services.five_phase.storage import CoordinatorStorage
from sar_agent.services.five_phase.subscribers import Subscribers
from sar_agent.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


class PhasedUpdates(Updates):
    """`listens`: whether this process hears subscribers; they cannot acknowledge otherwise."""

    def __init__(
        self,
        config: Config,
        metrics: Metrics,
        manager: SubnetManager,
        observer: SiteObserver,
        authority: Authority,
        *,
        listens: bool,
    ) -> None:
        super().__init__(config.update, metrics)
        self.listens = listens
        drop, trace = self.config.lapsed_leases == "drop", self.config.trace
        rules = LeaseRules(
            self.config.lease_seconds, self.config.deadline_seconds, lapsed_is_sheltered=drop
        )
        self.coordinator = Coordinator(
            config.agent.state_dir, rules, trace=Path(trace) if trace else None
        )
        self.five_phase = FivePhase(self.coordinator, manager, observer.owners_now, metrics)
        self.subscribers = Subscribers(self.coordinator, authority, metrics.subscribers.set)
        self.handlers = (self.subscribers,)

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

    def _context(
        self, plan: Plan, before: InForce, records: Collection[JobRecord], *, urgent: bool
    ) -> UpdateContext:
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
        return replace(
            super()._context(plan, before, records, urgent=urgent),
            subscribers=len(state.members),
            uncovered=sum(not covered & set(record.numbers) for record in records),
            on_shelter=sum(member.offset == 1 for member in state.members.values()),
            base_changes=changed.base > 0,
            shelter_changes=changed.shelter > 0,
            obstacle=obstacle,
            known_in=max(0.0, self.coordinator.all_known_at - now),
        )

    @contextmanager
    def under_way(self, choice: UpdateChoice, generation: int) -> Iterator[None]:
        """A five-phase update counts itself."""
        with ExitStack() as run:
            if choice.how is UpdateMethod.FIVE_PHASE:
                try:
                    run.enter_context(self.five_phase.phases(generation))
                except RunNotBegun as error:
                    if not choice.urgent:
                        raise
                    log.warning(
                        "%s; the repair is installed without phases, since it is proved safe", error
                    )
                    choice = replace(choice, how=UpdateMethod.DIRECT)
            if choice.how is not UpdateMethod.FIVE_PHASE:
                self.five_phase.pop_summary()  # an earlier run is not this decision's
                run.enter_context(super().under_way(choice, generation))
            yield

    def status(self) -> Mapping[str, Any]:
        """Phase, subscribers and jobs, as of `Subscribers.status`."""
        return self.subscribers.status()

    @property
    def unfinished(self) -> bool:
        """Whether a run is not over."""
        return self.coordinator.state.phase is not Phase.IDLE

    def end_unfinished(self) -> str:
        """End a run that was left behind."""
        unfinished = self.five_phase.end_run()
        return unfinished.why if unfinished.blocks else ""

    def pop_summary(self) -> dict[str, Any] | None:
        """The last run, once."""
        summary = self.five_phase.pop_summary()
        return asdict(summary) if summary.update else None

    def queue_read(self, owners: Mapping[str, int | None], began: float) -> None:
        """Subscribers of ended jobs are dropped."""
        self.five_phase.queue_read(owners, began)


def require_no_subscribers(config: Config) -> None:
    """For a command that installs: tables must not change under subscribers, and only the agent
    that hears them can move them. Raises `Unserved`."""
    saved = CoordinatorStorage(config.agent.state_dir).load()
    if config.update.mode == "five-phase" and saved and saved.members:
        raise Unserved(
            f"{len(saved.members)} subscribers have been promised that tables do not change under "
            'them, and this command cannot move them; stop their jobs, or set update.mode = "fast"'
        )


def subscribers_of(config: Config, numbers: Collection[str]) -> int:
    """How many processes of a job have subscribed; the job has these `numbers`."""
    saved = CoordinatorStorage(config.agent.state_dir).load()
    return sum(member.job in numbers for member in saved.members.values()) if saved else 0
