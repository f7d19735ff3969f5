"""One pass: observe, decide, reroute (`reroute.py`), publish. `once` is one pass, `run` many.

At every moment: only a plan that passed its checks is installed; what is believed to be in force
was read back; the state on disk never claims more than that. While Slurm, the subnet manager or the
disk does not answer, that is logged once, the routes in force stay, and the next pass tries again.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from sar_agent.agent.amendments import Amendments
from sar_agent.agent.current import Current
from sar_agent.agent.decide import Decision, ObservedState, Reason, decide, install_obstacle
from sar_agent.agent.install_keys import KeyInstaller
from sar_agent.agent.observe_site import Observation, owners
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.pass_observers import make_observers
from sar_agent.agent.peer import peer_generation
from sar_agent.agent.reroute import reroute
from sar_agent.demand.rails import rails_of
from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.util.kernel_cache import is_of_cache
from sar_agent.util.lock_file import Lock
from sar_agent.util.stages import record_stages

log = logging.getLogger(__name__)
ROLLBACK_SECONDS = 300.0
"""Seconds to wait for a person's rollback that is under way."""


@dataclass(eq=False)
class Agent(Parts):
    """The finished parts of an agent, and a pass over them."""

    current: Current = field(default_factory=Current)
    """What is in force: each pass, and each turn for keys, begins with it and replaces it."""

    def __post_init__(self) -> None:
        self.amendments = Amendments(self)
        self.keys = KeyInstaller(self)
        self.observers = make_observers(self)

    def pass_once(self, *, called: bool = False) -> Report:
        """Raises only what a new process is the remedy for, files of kernels that cannot be used;
        otherwise the report says what went wrong. `called`: the subnet manager waits."""
        self.observer.begin_pass(called=called)
        site: Observation | None = None
        try:
            with (
                Lock(self.config.agent.state_dir, "pass.lock", ROLLBACK_SECONDS),
                record_stages(self.metrics.timed),
            ):
                self.current, site, report = self._pass(self.current)
            self.unexpected.good("pass")
        except SarError as error:
            self.unexpected.good("pass")
            report = Report(Result.FAILED, str(error))
        except Exception as error:
            if is_of_cache(error):
                raise
            report = Report(Result.FAILED, self.unexpected.caught("pass", error))
            self.current = replace(self.current, last=None, shelter=None)
            self.unexpected.guard("pass", self.planner.forget, None, part=True)
        self.unexpected.guard("keys", self.keys.publish, None, part=True)
        self.publisher.passed(report)
        level = logging.ERROR if report.result is Result.FAILED else logging.INFO
        log.log(level, "%s", report.sentence)
        for name, observer in self.observers.items():
            tell = partial(observer.after_pass, self.current, site, report)
            self.unexpected.guard(name, tell, None, part=True, hook="after_pass")
        return report

    def serve_keys(self) -> None:
        """Serve requests for routing keys, between passes; quick, and never raises."""
        with record_stages(self.metrics.timed):
            self.current = self.keys.serve(self.current)

    def ask_status(self) -> SmStatus | None:
        """The subnet manager's status now, also published. Never raises."""

        def ask() -> SmStatus | None:
            status = self.observer.read_status().status
            self.publisher.status(status)
            return status

        return self.unexpected.guard("status", ask, None)

    def _pass(self, current: Current) -> tuple[Current, Observation, Report]:
        # Observe, and finish what was left behind.
        try:
            site = self.observer.observe(current)
        finally:
            self.publisher.sources(self.observer)
        self._forget_ended_jobs()
        obstacle = self._obstacle(site)
        self.pacing.observed(site)
        self.publisher.observation(site)
        # Read back what is in force.
        state = self.installed.load_state(site.status)
        current = replace(current, state=state, in_force=site.in_force, read_from=site.read_from)
        repairing = ""
        if not obstacle:
            current, repairing = self._follow_repairs(current, site)
        current = self.publisher.in_force(current, site.fabric, site.mix)
        self.keys.resume(current, site)
        # Decide.
        decision = self._decide(current, site, obstacle)
        postponed = repairing or self._postponed(decision, site, obstacle)
        if decision.reason and not postponed:
            # Plan, examine, choose, bring, record (`reroute.py`).
            current, report = reroute(
                self, decision.reason, decision.why, site, current, install=not obstacle
            )
        else:
            if current.state and self._installs:
                self.metrics.generation_installed.set(current.state.generation)
                current = self.installed.recall(current, site.fabric)
            current = self.publisher.planned(current, site.fabric, site.mix)
            if postponed:
                why = f"{decision.why}; {postponed}"
                report = Report(Result.LATER, why, decision.reason)
            else:
                report = Report(Result.HELD if decision.held else Result.NOTHING, decision.why)
        if obstacle and self._installs:
            why = f"nothing can be installed: {obstacle}"
            report = Report(Result.FAILED, why, report.reason)
        return current, site, report

    @property
    def _installs(self) -> bool:
        return self.config.agent.mode == "install"

    def _forget_ended_jobs(self) -> None:
        """What jobs give up when they have ended: hints, keys, service levels and subscriptions.
        Nothing where the queue was not read."""
        observer = self.observer
        if observer.queue.problem:
            return
        queue = observer.queue.value or ()
        observer.hints.drop_ended(queue)
        self.pool.release_ended({number for job in queue for number in job.numbers})
        self.transit.levels.forget_ended(job.start for job in queue)
        with suppress(SarError):  # a full disk is no reason to fail
            self.updates.queue_read(owners(queue), observer.began)

    def _obstacle(self, site: Observation) -> str:
        """Why nothing can be installed now, after what was left behind has been ended; empty where
        something can."""
        if self._installs:
            self.installed.recover()
            self.installed.record_held(site.status)
        unfinished = self.updates.end_unfinished()
        status, name = site.status, self.manager.name
        return install_obstacle(not self._installs, status, site.status_problem, name) or unfinished

    def _follow_repairs(self, current: Current, site: Observation) -> tuple[Current, str]:
        """Go on from tables that the manager has repaired, or say why to wait for it."""
        followed, wait = self.amendments.adopt_repairs(current, site)
        if followed is not current and followed.plan:
            self.publisher.new_plan(followed.plan)
            self.pool.adopt_repaired(site.fabric, followed.plan.routes)
            self.pacing.again()
        return followed, wait

    def _decide(self, current: Current, site: Observation, obstacle: str) -> Decision:
        """The first reason for other routes."""
        planned = current.planned.made if current.planned else None
        made = planned if obstacle else current.state
        hold = made.hold if made and not obstacle else None
        self.metrics.rollback_hold.set(bool(current.state and current.state.held))
        observed = ObservedState(
            site.records,
            site.fabric.digest,
            self.config.agent.engine,
            time.time(),
            self.config.agent.min_job_age_seconds,
            site.topology_edited,
            rails_of(site.fabric) is not None,
            None if obstacle else site.status,
            self.observer.running(),
            site.unknown_hosts,
        )
        decision = decide(made, observed, hold)
        if decision.reason or decision.held or obstacle:
            return decision
        if self.updates.shelter_owed:
            return Decision(Reason.SHELTER, "the shelter in force is that of another fabric")
        peer, own = peer_generation(self.config.agent.state_dir), current.state
        if own and peer > own.generation:
            why = f"the other machine's agent has had generation {peer}, this one {own.generation}"
            return Decision(Reason.GENERATION, why)
        if amended := self.amendments.due(site.status):
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
        return self.updates.wait_before_planning(len(site.records), decision.reason)
