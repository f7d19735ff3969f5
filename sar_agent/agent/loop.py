"""One pass: observe, decide, plan, prove, commit, publish. `once` is one pass, `run` many.

At every moment: only a plan that passed its checks is installed; what is believed to be in force
was read back; the state on disk never claims more than that. While Slurm, the subnet manager or the
disk does not answer, that is logged once, the routes in force stay, and the next pass tries again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from sar_agent.agent.amendments import Amendments
from sar_agent.agent.commit import Arrival, Committer, HistoryEntry
from sar_agent.agent.counted_after import CountedAfter
from sar_agent.agent.counted_traffic import CountedTraffic
from sar_agent.agent.decide import (
    REPAIRS,
    Decision,
    ObservedState,
    Reason,
    RoutesBasis,
    decide,
    install_obstacle,
)
from sar_agent.agent.ended_jobs import EndedJobs
from sar_agent.agent.install_keys import KeyInstaller
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.observe_site import Observation, SiteObserver
from sar_agent.agent.outcome import (
    Installed,
    Outcome,
    Planned,
    Report,
    Result,
    Waiting,
    words_of,
)
from sar_agent.agent.page_feed import PageFeed
from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import Publisher
from sar_agent.agent.reroute_pacer import Pacing, planning_basis
from sar_agent.agent.state import State
from sar_agent.agent.update_strategy import UpdateMethod
from sar_agent.agent.updates import Updates
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, SarError
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, NotYet, SmRefused, SmStatus, SubnetManager
from sar_agent.install.transit import NotSafe, Transit, transition_to
from sar_agent.jobs.filter import host_sets
from sar_agent.quality import Measures
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.backoff import Backoff
from sar_agent.util.lock_file import Lock
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.stages import record_stages
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
PASS_PATIENCE = 300.0
"""Seconds to wait for a person's rollback that is under way."""


@dataclass(eq=False)
class Agent:
    """The finished parts of an agent (`build.build_agent` makes them), and a pass over them."""

    config: Config
    manager: SubnetManager
    metrics: Metrics
    unexpected: UnexpectedErrors
    problems: ProblemLog
    installed: InstalledRoutes
    observer: SiteObserver
    ended: EndedJobs
    planner: Planner
    amendments: Amendments
    transit: Transit
    updates: Updates
    publisher: Publisher
    committer: Committer
    keys: KeyInstaller
    pacing: Pacing
    counted: CountedTraffic
    counted_after: CountedAfter
    page: PageFeed
    backoff: Backoff
    """What failed is tried again, but ever less often."""

    def pass_once(self, *, called: bool = False) -> Report:
        """Never raises: the report says what went wrong. `called`: the subnet manager waits."""
        self.observer.begin_pass(called=called)
        try:
            with (
                Lock(self.config.agent.state_dir, "pass.lock", PASS_PATIENCE),
                record_stages(self.metrics.timed),
            ):
                report = self._pass()
            self.unexpected.good("pass")
        except SarError as error:
            self.unexpected.good("pass")
            report = Report(Result.FAILED, str(error))
        except Exception as error:
            report = Report(Result.FAILED, self.unexpected.caught("pass", error))
            self.unexpected.guard("pass", self.planner.forget, None, part=True)
        now = time.time()
        self.unexpected.guard("keys", self.keys.publish, None, part=True)
        self.metrics.last_pass.set(now)
        if report.ok:
            self.metrics.last_success.set(now)
        level = logging.ERROR if report.result is Result.FAILED else logging.INFO
        log.log(level, "%s", report.sentence)
        self.page.finish(report)
        return report

    def serve_keys(self) -> None:
        """Serve requests for routing keys, between passes; quick, and never raises."""
        with record_stages(self.metrics.timed):
            self.keys.serve()

    def ask_status(self) -> SmStatus | None:
        """The subnet manager's status now, also published. Never raises."""
        return self.unexpected.guard("status", self._ask_status, None)

    def _ask_status(self) -> SmStatus | None:
        status = self.observer.read_status().status
        self.publisher.status(status)
        return status

    def _pass(self) -> Report:
        # Observe.
        try:
            site = self.observer.observe()
        finally:
            self.publisher.sources(self.observer)
        self.ended.follow()
        self._recover()
        unfinished = self.updates.end_run()
        self.pacing.observed(site)
        self.publisher.observation(site)
        state = self.installed.load_state(site.status)
        observing = self.config.agent.mode != "install"
        sm = self.manager.name
        obstacle = install_obstacle(observing, site.status, site.status_problem, sm) or unfinished
        saved, repairing = state, ""
        if not obstacle:
            state, repairing = self.amendments.follow(site, state)
        followed = self.planner.last if state is not saved else None
        if followed:
            self.publisher.new_plan(followed)
            self.keys.pool.follow(site.fabric, followed.routes)
            self.pacing.again()
        before = self.publisher.measure_in_force(
            site.in_force, site.fabric, site.mix, self.planner.last
        )
        self.counted.observe(site, before)
        self.counted_after.observe(site, state)
        self.page.observed(site, before)
        self.keys.resume(site, state)
        # Decide.
        decision = self._decide(site, state, obstacle)
        postponed = repairing or self._postponed(decision, site, obstacle)
        if postponed:
            self._publish_last_plan(site, state)
            report = Report(Result.LATER, f"{decision.why}; {postponed}", decision.reason)
        elif decision.reason is None:
            self._publish_last_plan(site, state)
            report = Report(Result.HELD if decision.held else Result.NOTHING, decision.why)
        else:
            # Plan, prove, commit; then publish.
            report = self._attempt(decision, site, state, obstacle, before)
        if obstacle and not observing:
            return Report(Result.FAILED, f"nothing can be installed: {obstacle}", report.reason)
        return report

    def _decide(self, site: Observation, state: State | None, obstacle: str) -> Decision:
        """The first reason for other routes."""
        hold = state.held if state and not obstacle else None
        self.metrics.held.set(bool(hold and hold.active(site.records, time.time())))
        observed = ObservedState(
            site.records,
            site.fabric.digest,
            self.config.agent.engine,
            time.time(),
            self.config.agent.min_job_age_seconds,
            site.topology_edited,
            None if obstacle else site.status,
        )
        decision = decide(self._basis(state, obstacle), observed, hold)
        if decision.reason or decision.held:
            return decision
        if not obstacle and self.updates.shelter_owed:
            return Decision(Reason.SHELTER, "the shelter in force is that of another fabric")
        if not obstacle and (amended := self.amendments.due(site.status)):
            return Decision(Reason.AMENDED, amended)
        return decision

    def _postponed(self, decision: Decision, site: Observation, obstacle: str) -> str:
        """Why a decision to act is not acted on now; empty where it is."""
        if decision.reason is None:
            self.pacing.calm()
            return ""
        if why := self.pacing.postponed(decision.reason, site):
            return why
        if obstacle:  # nothing is installed anyway, so plans are made
            return ""
        return self.updates.wait_before_planning(len(site.records), decision.reason in REPAIRS)

    def _attempt(
        self,
        decision: Decision,
        site: Observation,
        state: State | None,
        obstacle: str,
        before: Measures | None,
    ) -> Report:
        """Reroute, and publish how that went. `before` is the measures of the routes in force."""
        assert decision.reason is not None
        basis = planning_basis(site)
        if wait := self.backoff.wait(basis):
            why = f"it failed {self.backoff.failures} times, next try in {wait:.0f} s"
            return Report(Result.WAITING, f"{decision.why}; {why}", decision.reason)
        entry = HistoryEntry(decision, self.config.agent.engine, before)
        try:
            outcome = self._reroute(entry, site, state, install=not obstacle)
        except SarError as error:
            return self._failed(error, entry, site)
        self.backoff.succeeded()
        plan = outcome.plan
        self.publisher.new_plan(plan)
        match outcome:
            case Planned():
                result = Result.PLANNED
            case Waiting():
                result = Result.LATER
            case Installed():
                result = Result.INSTALLED
                self.page.installed(outcome)
        self.metrics.reroutes.labels(decision.reason.value, result.value).inc()
        seconds = time.monotonic() - entry.began
        if result is not Result.INSTALLED:
            self.installed.remember(plan, self._basis_of(plan, site))
        if result is not Result.LATER:
            self.pacing.acted()
        if result is Result.PLANNED:
            self.committer.decisions.add(
                decision,
                result,
                engine=entry.engine,
                jobs=len(plan.mix.jobs),
                seconds=seconds,
                before=before,
                plan=plan,
            )
        return Report(
            result,
            f"{decision.why}; {words_of(outcome)} ({plan.routes.engine}, "
            f"{len(plan.mix.jobs)} jobs, {seconds:.2f} s; dark fiber "
            f"{plan.measures.dark_fiber_ratio:.1%}, effective EFI max "
            f"{plan.measures.effective_efi_max}, largest load {plan.measures.load_max:.2f})",
            decision.reason,
        )

    def _reroute(
        self, entry: HistoryEntry, site: Observation, state: State | None, *, install: bool
    ) -> Outcome:
        """Plan for the site, prove the transition, and bring the plan into force.

        Where the subnet manager refuses because the fabric has changed since it was read, the
        fabric is read and planned for again at once, a few times. Raises `SarError`; then nothing
        is installed, and the routes in force stay."""
        reason, in_force = entry.decision.reason, site.in_force
        assert reason is not None
        if not install:
            plan = self.planner.plan(1, site.fabric, site.mix)
            return Planned(transition_to(plan, in_force.routes if in_force else None))
        for left in range(self.config.agent.plan_attempts - 1, -1, -1):
            self.amendments.resume(site, state)
            # Plan. `number` is above all that the manager or the state has heard of.
            heard = self.manager.status().highest_generation
            number = 1 + max(heard, state.generation if state else 0)
            plan = self.planner.plan(number, site.fabric, site.mix)
            if why := self.pacing.held_back(reason, site, entry.before, plan):
                return Waiting(transition_to(plan, in_force.routes if in_force else None), why)
            try:
                return self._prove_and_commit(plan, entry, site)
            except SmRefused as error:
                again = self.observer.observe_fabric_again(site)
                if not left or again is None:
                    raise
                log.warning("%s; the fabric has changed meanwhile, planning again", error)
                site = again
        raise AssertionError("unreachable: tries is at least 1")

    def _prove_and_commit(
        self, plan: Plan, entry: HistoryEntry, site: Observation
    ) -> Installed | Waiting:
        urgent = entry.decision.reason in REPAIRS

        def go(plan: Plan, before: InForce) -> Arrival | Waiting:
            plan, choice = self.updates.prepare(
                plan,
                before.routes,
                before.status.ours,
                site.records,
                urgent,
                lambda other: self.transit.examined(other, before),
            )
            if choice.how is UpdateMethod.WAIT:
                return Waiting(plan, choice.why)
            result = self.updates.put(
                choice,
                plan.generation,
                lambda: self.transit.bring(plan, before, whole=choice.whole),
            )
            self.planner.adopt(result.plan)
            return Arrival(result, choice.how.value, choice.why, self.updates.take_summary())

        state = State(
            generation=plan.generation,
            engine=self.config.agent.engine,
            jobs=host_sets(site.records),
            fabric_digest=plan.fabric.digest.hex(),
            installed_at=0.0,
            identity="",
        )
        return self.committer.commit(plan, go, state, entry, known=site.in_force)

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
                decision,
                result,
                engine=entry.engine,
                jobs=len(site.records),
                seconds=time.monotonic() - entry.began,
                before=entry.before,
                phases=self.updates.take_summary(),
                message=str(error),
            )
        return Report(result, f"{decision.why}; {error}", decision.reason)

    def _recover(self) -> None:
        """Finish what a process that died, or an install past its deadline, left behind. While the
        manager is not done with it, the next pass asks again, and none installs before."""
        if self.config.agent.mode != "install":
            return
        try:
            done = self.manager.recover()
        except SarError as error:
            self.problems.problem("finish", str(error))
        else:
            self.problems.problem("finish", "")
            if done:
                log.info("%s", done)

    def _basis(self, state: State | None, obstacle: str) -> RoutesBasis | None:
        """What the routes were made for with which new ones are compared: those installed or, where
        nothing can be installed, those planned last."""
        source = self.installed.planned if obstacle else state
        return source.basis if source else None

    def _basis_of(self, plan: Plan, site: Observation) -> RoutesBasis:
        engine = self.config.agent.engine
        return RoutesBasis(plan.generation, host_sets(site.records), plan.fabric.digest, engine)

    def _publish_last_plan(self, site: Observation, state: State | None) -> None:
        if state and self.config.agent.mode == "install":
            self.publisher.wanted(state.generation)
            self.installed.recall(state, site.fabric)
        planned = self.installed.planned
        same = planned and planned.fabric_digest == site.fabric.digest
        self.publisher.planned(planned.routes if planned and same else None, site.fabric, site.mix)
