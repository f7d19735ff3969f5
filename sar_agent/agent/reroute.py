"""A reroute: plan, examine, choose the method, bring into force, record, one step after the other.

Each step returns a value to the next. What was read and is no longer true starts them again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from sar_agent.agent.commit import Committer
from sar_agent.agent.current import Current
from sar_agent.agent.decide import REPAIRS, Decision, Reason, RoutesBasis
from sar_agent.agent.history import HistoryEntry
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.observe_site import Observation, SiteObserver
from sar_agent.agent.outcome import Outcome, Report, Result
from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import Publisher
from sar_agent.agent.reroute_pacer import Pacing, planning_basis
from sar_agent.agent.state import State
from sar_agent.agent.update_strategy import UpdateMethod
from sar_agent.agent.updates import Updates
from sar_agent.config.model import AgentConfig
from sar_agent.errors import CheckFailed, SarError
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import NotYet, SmRefused, SubnetManager
from sar_agent.install.transit import NotSafe, Transit, transition_to
from sar_agent.jobs.filter import host_sets
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.backoff import Backoff

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Rerouter:
    """The parts that a reroute needs."""

    config: AgentConfig
    manager: SubnetManager
    metrics: Metrics
    installed: InstalledRoutes
    observer: SiteObserver
    planner: Planner
    transit: Transit
    updates: Updates
    publisher: Publisher
    committer: Committer
    pacing: Pacing
    backoff: Backoff
    """What failed is tried again, but ever less often."""

    def attempt(
        self, decision: Decision, site: Observation, current: Current, *, install: bool
    ) -> tuple[Current, Report]:
        """Reroute, or only plan where nothing is to be installed, and publish how that went."""
        assert decision.reason is not None
        basis = planning_basis(site)
        if wait := self.backoff.wait(basis):
            why = f"it failed {self.backoff.failures} times, next try in {wait:.0f} s"
            return current, Report(Result.WAITING, f"{decision.why}; {why}", decision.reason)
        entry = HistoryEntry(decision, self.config.engine, current.measures)
        try:
            if install:
                current, outcome = self._install(entry, site, current)
            else:
                outcome = self._plan(site, current)
        except SarError as error:
            return current, self._failed(error, entry, site)
        self.backoff.succeeded()
        plan, result = outcome.plan, outcome.result
        self.publisher.new_plan(plan)
        seconds = time.monotonic() - entry.began
        self.metrics.reroutes.labels(decision.reason.value, result.value).inc()
        if result is not Result.INSTALLED:
            jobs = host_sets(site.records)
            made_for = RoutesBasis(plan.generation, jobs, plan.fabric.digest, self.config.engine)
            current = current.planned_as(plan, made_for)
        if result is not Result.LATER:
            self.pacing.acted()
        if result is Result.PLANNED:
            self.committer.decisions.add(entry, result, jobs=len(plan.mix.jobs), plan=plan)
        return current, Report(
            result,
            f"{decision.why}; {outcome.words} ({plan.routes.engine}, "
            f"{len(plan.mix.jobs)} jobs, {seconds:.2f} s; dark fiber "
            f"{plan.measures.dark_fiber_ratio:.1%}, effective EFI max "
            f"{plan.measures.effective_efi_max}, largest load {plan.measures.load_max:.2f})",
            decision.reason,
        )

    def _plan(self, site: Observation, current: Current) -> Outcome:
        plan = self.planner.plan(1, site.fabric, site.mix, current.last, current.shelter)
        return Outcome(Result.PLANNED, _judged(plan, current), "planned, not installed")

    def _install(
        self, entry: HistoryEntry, site: Observation, current: Current
    ) -> tuple[Current, Outcome]:
        """Where other tables are in force meanwhile, or the fabric has changed since it was read,
        that is read again and planned for at once, a few times. Raises `SarError`; then nothing is
        installed, and the routes in force stay."""
        for left in range(self.config.plan_attempts - 1, -1, -1):
            try:
                return self._steps(entry, site, current)
            except SmRefused as error:
                again = self.observer.observe_fabric_again(site)
                if not left or not (error.changed or again):
                    raise
                log.warning("%s; reading what is in force again, and planning again", error)
                site, current = again or site, replace(current, in_force=None, read_from=None)
        raise AssertionError("unreachable: there is at least one attempt")

    def _steps(
        self, entry: HistoryEntry, site: Observation, current: Current
    ) -> tuple[Current, Outcome]:
        reason = entry.decision.reason
        assert reason is not None
        # Plan. The number is above all that the manager or the state has heard of.
        state, last = current.state, self._start(current, site)
        heard = self.manager.status().highest_generation
        number = 1 + max(heard, state.generation if state else 0)
        shelter = None if reason is Reason.AMENDED else current.shelter
        plan = self.planner.plan(number, site.fabric, site.mix, last, shelter)
        if why := self.pacing.held_back(reason, site, entry.before, plan):
            return current, Outcome(Result.LATER, _judged(plan, current), why)
        # Examine the transition from what is in force.
        before = self.transit.before(plan.fabric, current.in_force)
        kept = self.updates.keep_shelter(plan, before)
        examined = self.transit.examine(kept, before)
        # Choose the method.
        choice = self.updates.choose(
            examined,
            before,
            site.records,
            urgent=reason in REPAIRS,
            shelter_owed=kept is not plan,
        )
        if choice.how is UpdateMethod.WAIT:
            return current, Outcome(Result.LATER, examined, choice.why)
        # Bring it into force, and record what was read back.
        with self.updates.under_way(choice, examined.generation):
            result = self.transit.bring(examined, before, whole=choice.whole)
        after = State(
            generation=examined.generation,
            engine=self.config.engine,
            jobs=host_sets(site.records),
            fabric_digest=plan.fabric.digest.hex(),
            installed_at=0.0,
            identity="",
        )
        phases = self.updates.take_summary()
        current = replace(current, shelter=shelter)
        return self.committer.record(
            current, result, after, entry, how=choice.how.value, why=choice.why, phases=phases
        )

    def _start(self, current: Current, site: Observation) -> Plan | None:
        """The plan to start from. After a restart, that is the one in force, if it was installed
        last and the fabric is the same; otherwise none. Raises `NotYet` while the manager is at
        work: once it is done, there may be routes to start from."""
        state = current.state
        if current.last or state is None or not self.planner.starts_from(state.engine):
            return current.last
        try:
            known = self.installed.know_plan(current, site.fabric, current.in_force)
        except NotYet:
            raise
        except SarError as error:
            log.info("starting from no routes: %s", error)
            return None
        return known.plan_in_force(site.fabric)

    def _failed(self, error: SarError, entry: HistoryEntry, site: Observation) -> Report:
        """Nothing was installed. `NotYet` is no failure: a later pass may find the manager done."""
        decision = entry.decision
        assert decision.reason is not None
        result = Result.LATER if isinstance(error, NotYet) else Result.FAILED
        if isinstance(error, NotSafe):
            self.metrics.transitions.labels(error.transition.way.value).inc()
        self.metrics.reroutes.labels(decision.reason.value, result.value).inc()
        if result is Result.FAILED:
            self.backoff.failed(planning_basis(site))
            if isinstance(error, CheckFailed):
                self.metrics.check_failures.inc()
            self.committer.decisions.add(
                entry,
                result,
                jobs=len(site.records),
                phases=self.updates.take_summary(),
                message=str(error),
            )
        return Report(result, f"{decision.why}; {error}", decision.reason)


def _judged(plan: Plan, current: Current) -> Plan:
    """The plan with the verdict on the transition from the tables that were read."""
    return transition_to(plan, current.in_force.routes if current.in_force else None)
