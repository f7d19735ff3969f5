"""One pass: look, decide, plan, install, read back, record. `once` is one of them, `run` many.

What must hold at every moment: only a plan that passed the checks is installed; what is believed
to be in force was read back from OpenSM; the state on disk claims nothing before that. Whoever is
away (Slurm, OpenSM, the disk) gets one sentence, the routes in force stay, and the next pass tries
again.
"""

from __future__ import annotations

import logging
import time

from sar_agent import __version__
from sar_agent.agent.act import Actor
from sar_agent.agent.decide import (
    MENDS,
    OUR_ENGINE,
    Decision,
    ObservedState,
    Reason,
    RoutesBasis,
    decide,
)
from sar_agent.agent.gather import Gatherer, Observation
from sar_agent.agent.history import History
from sar_agent.agent.job_map import JobMap
from sar_agent.agent.pacing import Pacing
from sar_agent.agent.record import Records
from sar_agent.agent.report import Report, Result
from sar_agent.agent.reroute import Rerouter
from sar_agent.agent.reroute_pacer import ReroutePacer
from sar_agent.agent.show import Show
from sar_agent.agent.standing import InstalledRoutes
from sar_agent.agent.state import State
from sar_agent.agent.updates import Updates, owners
from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError
from sar_agent.five_phase.driver import Owners
from sar_agent.jobs import JobMix
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.keys.installer import KeyInstaller
from sar_agent.keys.pool import KeyPool
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import finish_or_restore
from sar_agent.routing import load_engine
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.lock_file import Lock
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
PASS_PATIENCE = 300.0
"""Seconds to wait for a rollback by hand that is under way."""


class Agent:
    """Everything a pass needs; without `nerves` (`once`) it acts on every change at once.

    Raises `InputError` for an engine that is none."""

    def __init__(
        self,
        config: Config,
        *,
        bridge: PluginClient | None = None,
        gatherer: Gatherer | None = None,
        metrics: Metrics | None = None,
        nerves: ReroutePacer | None = None,
        who: str = "agent",
    ) -> None:
        self.config = config
        bridge = bridge or PluginClient(
            config.opensm.plugin_socket, config.opensm.load_deadline_seconds
        )
        self.gatherer = gatherer or Gatherer(config, bridge)
        self.metrics = metrics or Metrics(__version__, config.agent.mode, config.agent.engine)
        self.unexpected = UnexpectedErrors(self.metrics.unexpected_errors)
        self.gatherer.unexpected = self.unexpected
        self.say = say = ProblemLog(log)
        self.standing = InstalledRoutes(config, bridge, say)
        self.store = self.standing.store
        self.show = Show(self.metrics, self.gatherer, self.standing, say)
        self.history = History(config.agent.state_dir)
        self.job_map = JobMap(config, say)
        self.updates = Updates(config, bridge, self._queue_now, self.metrics)
        self.rerouter = Rerouter(
            config,
            load_engine(config.agent.engine),
            bridge,
            self.gatherer,
            self.updates,
            self.metrics.timed,
        )
        self.pacing = Pacing(config.agent, nerves)
        records = Records(config.agent.engine, self.history, who, say)
        self.actor = Actor(config, self.rerouter, self.standing, self.show, self.pacing, records)
        self.keys = KeyPool(config.keys, config.agent.state_dir)
        self.rerouter.planner.keys_on = self.keys.rows
        self.rerouter.keys_lost = self.keys.lose_all
        self.key_server = KeyInstaller(config, self.keys, self.rerouter, self.standing, self.show)
        self._was_empty = False
        """Whether the last look showed no job: that is believed when the next one does, too."""

    def pass_once(self) -> Report:
        """Never raises: what went wrong is the report's sentence."""
        try:
            with Lock(self.config.agent.state_dir, "pass.lock", PASS_PATIENCE):
                report = self._pass()
            self.unexpected.good("pass")
        except SarError as error:
            self.unexpected.good("pass")
            report = Report(Result.FAILED, str(error))
        except Exception as error:
            report = Report(Result.FAILED, self.unexpected.caught("pass", error))
            self.unexpected.guard("pass", self.rerouter.planner.forget, None, part=True)
        now = time.time()
        self.unexpected.guard("keys", self.key_server.show, None, part=True)
        self.metrics.last_pass.set(now)
        if report.ok:
            self.metrics.last_success.set(now)
        level = logging.ERROR if report.result is Result.FAILED else logging.INFO
        log.log(level, "%s", report.sentence)
        return report

    def serve_keys(self) -> None:
        """Requests for routing keys, between passes; quick, and never raises."""
        self.key_server.serve()

    def ask_status(self) -> PluginStatus | None:
        """What the plugin says now, shown in the metrics, too. Never raises."""
        return self.unexpected.guard("status", self.show.ask_status, None)

    def _pass(self) -> Report:
        try:
            look = self.gatherer.look(self.metrics.timed)
        finally:
            self.show.sources()
        if not self.gatherer.queue.problem:
            queue = self.gatherer.queue.value or ()
            if queue or self._was_empty:  # Slurm may have been asked without the right to see jobs
                self.gatherer.hints.settle(queue)
                self.keys.settle({n for one in queue for n in one.numbers})
                self.rerouter.levels.settle(one.start for one in queue)
            self._was_empty = not queue
            self.updates.know(owners(self.gatherer.running()), self.gatherer.looked_at)
        self._finish()
        unfinished = self.updates.settle()
        self.pacing.saw(look)
        self.show.status(look.status)
        mix = mix_of_records(look.fabric, look.records).mix
        self.show.look(look, mix)
        self.job_map.write(look.records)
        state = self._state(look)
        before = self.show.in_force(look.status, look.fabric, mix)
        self.key_server.resume(look, state)

        obstacle = self._obstacle(look) or unfinished
        made = self._made(state, obstacle)
        hold = state.held if state and not obstacle else None
        decision = decide(made, self._seen(look, obstacle), hold)
        quiet = decision.reason is None and not decision.held
        if quiet and (better := self.rerouter.planner.tend(look.fabric, mix)):
            decision = Decision(Reason.BETTER, better)
        elif quiet and not obstacle and self.updates.shelter_owed:
            decision = Decision(Reason.SHELTER, "the shelter in force is that of another fabric")
        self.metrics.held.set(hold is not None and hold.active(look.records, time.time()))
        if decision.reason is None:
            self.pacing.calm()
            self._show_planned(state, look, mix)
            report = Report(Result.HELD if decision.held else Result.NOTHING, decision.why)
        elif later := self.pacing.later(decision.reason, look) or self._wait(
            decision.reason, look, obstacle
        ):
            self._show_planned(state, look, mix)
            report = Report(Result.LATER, f"{decision.why}; {later}", decision.reason)
        else:
            report = self.actor.act(decision, look, state, obstacle, before)
        if obstacle and self.config.agent.mode == "install":
            return Report(Result.FAILED, f"nothing can be installed: {obstacle}", report.reason)
        return report

    def _finish(self) -> None:
        """What a process that died, or a load past its deadline, left undone; where OpenSM is not
        done with it, the next pass asks again, and none installs before."""
        if self.config.agent.mode != "install":
            return
        try:
            done = finish_or_restore(self.rerouter.bridge, self.config.agent.routes_path)
        except SarError as error:
            self.say.problem("finish", str(error))
        else:
            self.say.problem("finish", "")
            if done:
                log.info("%s", done)

    def _state(self, look: Observation) -> State | None:
        """Raises `InputError` where it cannot be read while our routes are in force: they may be
        held. With another engine's in force nothing is, and a repair does not wait."""
        try:
            return self.store.load()
        except InputError as error:
            if look.status is None or look.status.engine_in_force in (OUR_ENGINE, "none"):
                raise
            log.warning(
                "%s; mending without it, as engine %s is in force",
                error,
                look.status.engine_in_force,
            )
            return None

    def _wait(self, reason: Reason, look: Observation, obstacle: str) -> str:
        """Why nothing could be installed now; where nothing is anyway, plans are made."""
        if obstacle:
            return ""
        return self.updates.wait_before_planning(len(look.records), reason in MENDS)

    def _queue_now(self) -> Owners | None:
        records = self.gatherer.ask_queue()
        return None if records is None else owners(records)

    def _obstacle(self, look: Observation) -> str:
        """Why nothing is installed in this pass; empty where it can be."""
        if self.config.agent.mode != "install":
            return "observing"
        if look.status is None:
            return look.status_problem
        if look.status.sm_state != "master":
            return f"this OpenSM is not the master but {look.status.sm_state}"
        if look.status.engine_in_force == "none":
            return "OpenSM has just started and has not routed yet"
        return ""

    def _made(self, state: State | None, obstacle: str) -> RoutesBasis | None:
        """What new routes are compared with: what is installed, or else what was planned last."""
        if not obstacle:
            return state.made if state else None
        planned = self.standing.planned
        return planned.made if planned else None

    def _seen(self, look: Observation, obstacle: str) -> ObservedState:
        return ObservedState(
            look.records,
            look.fabric.digest,
            self.config.agent.engine,
            time.time(),
            self.config.agent.min_job_age_seconds,
            look.topology_edited,
            None if obstacle else look.status,
        )

    def _show_planned(self, state: State | None, look: Observation, mix: JobMix) -> None:
        if state and self.config.agent.mode == "install":
            self.metrics.generation_wanted.set(state.generation)
            self.standing.plans_again(state, look.fabric)
        self.show.planned(look.fabric, mix)
