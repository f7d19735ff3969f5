"""One pass: look, decide, plan, install, read back, record. `once` is one of them, `run` many.

What must hold at every moment: only a plan that passed the checks is installed; what is believed
to be in force was read back from OpenSM; the state on disk claims nothing before that. Whoever is
away (Slurm, OpenSM, the disk) gets one sentence, the routes in force stay, and the next pass tries
again.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from sar_agent import __version__
from sar_agent.agent.backoff import Backoff
from sar_agent.agent.decide import MENDS, Decision, Made, Reason, Seen, decide
from sar_agent.agent.five_phase import Owners, Told
from sar_agent.agent.gather import Gatherer, Look
from sar_agent.agent.history import History, Row, summary
from sar_agent.agent.how import How
from sar_agent.agent.keys.manager import KeyManager
from sar_agent.agent.keys.serve import resume, serve, show
from sar_agent.agent.lock import Lock
from sar_agent.agent.nerves import Nerves
from sar_agent.agent.observe import TablesInForce, Worth
from sar_agent.agent.pacing import TOO_LITTLE, Pacing, work_of
from sar_agent.agent.report import Report, Result
from sar_agent.agent.reroute import Done, Rerouter
from sar_agent.agent.say import SayOnce
from sar_agent.agent.state import State, StateStore
from sar_agent.agent.updates import Updates, owners
from sar_agent.config import Config
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.install.bridge import Bridge, BridgeStatus
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, file_to_routes
from sar_agent.install.transit import NotSafe, transition_to
from sar_agent.jobs import JobMix
from sar_agent.jobs.filter import host_sets
from sar_agent.jobs.jobmap import write_jobmap
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.records import JobRecord
from sar_agent.measure import Measures
from sar_agent.measure.metrics import Metrics, Which
from sar_agent.routing import load_engine
from sar_agent.routing.routes import Routes

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
        bridge: Bridge | None = None,
        gatherer: Gatherer | None = None,
        metrics: Metrics | None = None,
        nerves: Nerves | None = None,
        who: str = "agent",
    ) -> None:
        self.config, self.who = config, who
        folder = config.agent.state_dir
        self.bridge = bridge or Bridge(
            config.opensm.bridge_socket, config.opensm.load_deadline_seconds
        )
        self.gatherer = gatherer or Gatherer(config, self.bridge)
        self.metrics = metrics or Metrics(__version__, config.agent.mode, config.agent.engine)
        self.store, self.history = StateStore(folder), History(folder)
        self.generations = Generations(folder, config.agent.generations_kept)
        self.tables = TablesInForce(self.bridge, config.opensm.lfts_dump)
        self.updates = Updates(config, self.bridge, self._queue_now, self.metrics)
        self.rerouter = Rerouter(
            config,
            load_engine(config.agent.engine),
            self.bridge,
            self.gatherer,
            self.updates,
            self.metrics.timed,
        )
        self.pacing = Pacing(config.agent, nerves)
        self.backoff = Backoff(config.agent.interval_seconds, config.agent.backoff_max_seconds)
        self.say = SayOnce(log)
        self._worth: dict[Which, Worth] = {"in_force": Worth(), "planned": Worth()}
        self.planned: tuple[Made, Routes] | None = None
        self._planned_on = b""
        """Digest of the fabric whose indices the planned routes speak in."""
        self._status: BridgeStatus | None = None
        self._map_written: tuple[JobRecord, ...] | None = None
        self.stands: Plan | None = None
        """The plan in force, where this process knows it."""
        self.keys = KeyManager(config.keys, folder)
        self.rerouter.planner.keys_on = self.keys.rows
        self.rerouter.keys_lost = self.keys.lose_all

    def pass_once(self) -> Report:
        """Never raises `SarError`: what went wrong is the report's sentence."""
        try:
            with Lock(self.config.agent.state_dir, "pass.lock", PASS_PATIENCE):
                report = self._pass()
        except SarError as error:
            report = Report(Result.FAILED, str(error))
        now = time.time()
        show(self)
        self.metrics.last_pass.set(now)
        if report.ok:
            self.metrics.last_success.set(now)
        level = logging.ERROR if report.result is Result.FAILED else logging.INFO
        log.log(level, "%s", report.sentence)
        return report

    def serve_keys(self) -> None:
        """Requests for routing keys, between passes; quick, and never raises `SarError`."""
        serve(self)
        show(self)

    def ask_status(self) -> BridgeStatus | None:
        """What the plugin says now, shown in the metrics, too."""
        status, _ = self.gatherer.status()
        self._show_status(status)
        return status

    def _pass(self) -> Report:
        try:
            look = self.gatherer.look(self.metrics.timed)
        finally:
            self._show_sources()
        if not self.gatherer.queue.problem:
            self.gatherer.hints.settle(self.gatherer.queue.value or ())
            self.keys.settle({n for one in self.gatherer.queue.value or () for n in one.numbers})
            self.updates.know(owners(self.gatherer.running()), self.gatherer.looked_at)
        unfinished = self.updates.settle()
        self.pacing.saw(look)
        self._show_status(look.status)
        mix = mix_of_records(look.fabric, look.records).mix
        self._show_look(look, mix)
        self._write_map(look.records)
        state = self.store.load()
        before = self._show_in_force(look.status, look.fabric, mix)
        resume(self, look, state)

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
            self._show_planned(state, look.fabric, mix)
            report = Report(Result.HELD if decision.held else Result.NOTHING, decision.why)
        elif later := self.pacing.later(decision.reason, look) or self._wait(
            decision.reason, look, obstacle
        ):
            self._show_planned(state, look.fabric, mix)
            report = Report(Result.LATER, f"{decision.why}; {later}", decision.reason)
        else:
            report = self._reroute(decision, look, mix, state, obstacle, before)
        if obstacle and self.config.agent.mode == "install":
            return Report(Result.FAILED, f"nothing can be installed: {obstacle}", report.reason)
        return report

    def _wait(self, reason: Reason, look: Look, obstacle: str) -> str:
        """Why nothing could be installed now; where nothing is anyway, plans are made."""
        if obstacle:
            return ""
        return self.updates.wait_before_planning(len(look.records), reason in MENDS)

    def _queue_now(self) -> Owners | None:
        records = self.gatherer.ask_queue()
        return None if records is None else owners(records)

    def _obstacle(self, look: Look) -> str:
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

    def _made(self, state: State | None, obstacle: str) -> Made | None:
        """What new routes are compared with: what is installed, or else what was planned last."""
        if not obstacle:
            return state.made if state else None
        return self.planned[0] if self.planned else None

    def _seen(self, look: Look, obstacle: str) -> Seen:
        return Seen(
            look.records,
            look.fabric.digest,
            self.config.agent.engine,
            time.time(),
            self.config.agent.min_job_age_seconds,
            look.topology_edited,
            None if obstacle else look.status,
        )

    def _reroute(
        self,
        decision: Decision,
        look: Look,
        mix: JobMix,
        state: State | None,
        obstacle: str,
        before: Measures | None,
    ) -> Report:
        assert decision.reason is not None
        key = work_of(look)
        if wait := self.backoff.wait(key):
            why = (
                f"{decision.why}; it failed {self.backoff.failures} times, next try in {wait:.0f} s"
            )
            return Report(Result.WAITING, why, decision.reason)
        start = time.monotonic()
        try:
            done = self.rerouter.reroute(
                look,
                state,
                install=not obstacle,
                urgent=decision.reason in MENDS,
                worth=partial(self.pacing.worth, decision.reason, look, before),
            )
        except SarError as error:
            self.backoff.failed(key)
            if isinstance(error, CheckFailed):
                self.metrics.check_failures.inc()
            if isinstance(error, NotSafe):
                self.metrics.transitions.labels(error.transition.way.value).inc()
            self._record(decision, Result.FAILED, look, start, before, None, str(error))
            return Report(Result.FAILED, f"{decision.why}; {error}", decision.reason)
        self.backoff.succeeded()
        if done.read_back is None:  # what would have happened?
            routes = self.tables.look(look.status, done.plan.fabric)
            done = replace(done, plan=transition_to(done.plan, routes, self.metrics.timed))
        if done.plan.transition:
            self.metrics.transitions.labels(done.plan.transition.way.value).inc()
        if done.read_back is None:
            result, words = Result.PLANNED, "planned, not installed"
            if not obstacle:
                result, words = Result.LATER, done.choice.why if done.choice else TOO_LITTLE
        else:
            result = Result.INSTALLED
            assert done.changed
            words = (
                f"generation {done.plan.generation} is in force, {done.changed.entries} entries in "
                f"{done.changed.blocks} blocks changed"
            )
            if done.choice and done.choice.how is not How.DIRECT:
                words += f" ({done.choice.how.value}: {done.choice.why})"
            self._installed(done)
        made = Made(
            done.plan.generation,
            host_sets(done.records),
            done.plan.fabric.digest,
            self.config.agent.engine,
        )
        self.planned, self._planned_on = (made, done.plan.routes), done.plan.fabric.digest
        if result is not Result.LATER:
            self.pacing.acted()
        plan = done.plan
        self._worth["planned"].known(plan.fabric, plan.routes, plan.measures, plan.mix)
        self.metrics.show_measures("planned", plan.measures)
        if result is Result.LATER:  # nothing that history tells of
            seconds = time.monotonic() - start
            self.metrics.reroutes.labels(decision.reason.value, result.value).inc()
        else:
            seconds = self._record(decision, result, look, start, before, done)
        return Report(
            result,
            f"{decision.why}; {words} ({plan.routes.engine}, {len(plan.mix.jobs)} jobs, "
            f"{seconds:.2f} s; dark fiber {plan.measures.dark_fiber_ratio:.1%}, effective EFI max "
            f"{plan.measures.effective_efi_max}, largest load {plan.measures.load_max:.2f})",
            decision.reason,
        )

    def _installed(self, done: Done) -> None:
        """Only now may the state say so; the file of the generation it names is there first."""
        assert done.read_back is not None
        plan = self.stands = done.plan
        self.keep(done)
        self.store.save(
            State(
                generation=plan.generation,
                engine=self.config.agent.engine,
                jobs=host_sets(done.records),
                fabric_digest=plan.fabric.digest.hex(),
                installed_at=time.time(),
            )
        )
        status = self.ask_status()
        self.tables.took(done.read_back, status, plan.fabric)
        self.metrics.generation_wanted.set(plan.generation)
        assert done.changed
        self.metrics.entries_changed.set(done.changed.entries)
        self.metrics.entries_changed_sum.inc(done.changed.entries)
        self.metrics.blocks_changed.set(done.changed.blocks)
        self._show_in_force(status, plan.fabric, plan.mix)

    def keep(self, done: Done) -> None:
        """For a rollback; a full disk is no reason to fail."""
        try:
            self.generations.add(done.plan.routes_file())
            self.say.problem("generations", "")
        except SarError as error:
            self.say.problem("generations", f"{error}; no rollback to this generation")

    def _record(
        self,
        decision: Decision,
        result: Result,
        look: Look,
        start: float,
        before: Measures | None,
        done: Done | None,
        message: str = "",
    ) -> float:
        assert decision.reason is not None
        self.metrics.reroutes.labels(decision.reason.value, result.value).inc()
        seconds = time.monotonic() - start
        installed = done if done and done.read_back is not None else None
        changed = installed.changed if installed else None
        transition = done.plan.transition if done else None
        achieved = (
            self._measures("in_force", done.plan.fabric, done.plan.mix)
            if installed and done
            else None
        )
        row = Row(
            at=time.time(),
            who=self.who,
            reason=decision.reason.value,
            why=decision.why,
            result=result.value,
            message=message,
            engine=self.config.agent.engine,
            generation=installed.plan.generation if installed else 0,
            jobs=len(done.plan.mix.jobs) if done else len(look.records),
            seconds=seconds,
            entries_changed=changed.entries if changed else None,
            blocks_changed=changed.blocks if changed else None,
            transition=transition.words if transition else "",
            before=summary(before),
            predicted=summary(done.plan.measures) if done else None,
            achieved=summary(achieved),
            how=installed.choice.how.value if installed and installed.choice else "",
            phases=self._told(),
        )
        try:
            self.history.add(row)
            self.say.problem("history", "", "the history can be written again")
        except SarError as error:
            self.say.problem("history", f"{error}; this decision is not in the history")
        return seconds

    def _told(self) -> dict[str, Any] | None:
        """Of the five-phase update that this decision made, if it did."""
        told, self.updates.five_phase.told = self.updates.five_phase.told, Told()
        return asdict(told) if told.update else None

    def _write_map(self, records: tuple[JobRecord, ...]) -> None:
        """Written in both modes: a site with the original patch reads it, nobody else does."""
        path = self.config.agent.run_dir / "job-to-terminal.map"
        if records == self._map_written and path.exists():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_jobmap(path, records)
        except (SarError, OSError) as error:
            self.say.problem("map", f"{error}; the old job-to-terminal map stays")
        else:
            self._map_written = records
            self.say.problem("map", "", "the job-to-terminal map can be written again")

    def _measures(self, which: Which, fabric: Fabric, mix: JobMix) -> Measures | None:
        routes: Routes | None = None
        if which == "in_force":
            routes = self.tables.look(self._status, fabric)
        elif self.planned and self._planned_on == fabric.digest:
            routes = self.planned[1]
        if routes is None:
            return None
        try:
            measures = self._worth[which].of(fabric, mix, routes, self.metrics.timed)
        except SarError as error:
            self.say.problem(which, f"routes {which}: {error}")
            return None
        self.say.problem(which, "")
        return measures

    def _show_in_force(
        self, status: BridgeStatus | None, fabric: Fabric, mix: JobMix
    ) -> Measures | None:
        self._status = status
        measures = self._measures("in_force", fabric, mix)
        self.metrics.show_measures("in_force", measures)
        self.say.problem("tables", self.tables.problem)
        return measures

    def _show_planned(self, state: State | None, fabric: Fabric, mix: JobMix) -> None:
        """After a restart, or a rollback, the plan is the generation that was kept."""
        if state and self.config.agent.mode == "install":
            self.metrics.generation_wanted.set(state.generation)
            have = self.planned and (self.planned[0].generation, self._planned_on)
            if have != (state.generation, fabric.digest):
                with suppress(
                    SarError
                ):  # none is kept: then no more is known than what is in force
                    kept = file_to_routes(fabric, self.generations.read(state.generation))
                    self.planned, self._planned_on = (state.made, kept), fabric.digest
        self.metrics.show_measures("planned", self._measures("planned", fabric, mix))

    def _show_status(self, status: BridgeStatus | None) -> None:
        if status is None:
            self.metrics.show_sm(None)
        else:
            self.metrics.show_sm(
                status.engine_in_force, status.generation_in_force, status.unknown_terminals
            )

    def _show_sources(self) -> None:
        queue, fabric = self.gatherer.queue, self.gatherer.fabric
        self.metrics.slurm_reachable.set(not queue.problem)
        self.metrics.slurm_read.set(queue.at)
        self.metrics.fabric_read.set(fabric.at)

    def _show_look(self, look: Look, mix: JobMix) -> None:
        self.metrics.jobs.set(len(mix.jobs))
        self.metrics.unknown_hosts.set(len(look.unknown_hosts))
        self.metrics.switches.set(look.fabric.switches)
        self.metrics.terminals.set(look.fabric.terminals)
        self.metrics.channels.set(int(look.fabric.channel_up.sum()))
