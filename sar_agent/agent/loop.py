"""One pass: observe, decide, reroute (`reroute.py`), publish. `once` is one pass, `run` many.

At every moment: only a plan that passed its checks is installed; what is believed to be in force
was read back; the state on disk never claims more than that. While Slurm, the subnet manager or the
disk does not answer, that is logged once, the routes in force stay, and the next pass tries again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from sar_agent.agent.amendments import Amendments
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
    Report,
    Result,
)
from sar_agent.agent.page_feed import PageFeed
from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import Publisher
from sar_agent.agent.reroute import Rerouter
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.agent.state import State
from sar_agent.agent.updates import Updates
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SmStatus, SubnetManager
from sar_agent.telemetry.metrics import Metrics
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
    updates: Updates
    publisher: Publisher
    rerouter: Rerouter
    keys: KeyInstaller
    pacing: Pacing
    counted: CountedTraffic
    counted_after: CountedAfter
    page: PageFeed

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
            report = self.rerouter.attempt(decision, site, state, before, install=not obstacle)
        if obstacle and not observing:
            return Report(Result.FAILED, f"nothing can be installed: {obstacle}", report.reason)
        return report

    def _decide(self, site: Observation, state: State | None, obstacle: str) -> Decision:
        """The first reason for other routes."""
        hold = state.held if state and not obstacle else None
        self.metrics.held.set(bool(hold and hold.active(time.time())))
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

    def _publish_last_plan(self, site: Observation, state: State | None) -> None:
        if state and self.config.agent.mode == "install":
            self.publisher.wanted(state.generation)
            self.installed.recall(state, site.fabric)
        planned = self.installed.planned
        same = planned and planned.fabric_digest == site.fabric.digest
        self.publisher.planned(planned.routes if planned and same else None, site.fabric, site.mix)
