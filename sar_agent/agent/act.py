"""From a decision to routes in force, or planned, and the record of it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from sar_agent.agent.decide import MENDS, Decision, Reason
from sar_agent.agent.gather import Observation
from sar_agent.agent.pacing import TOO_LITTLE, Pacing, work_of
from sar_agent.agent.record import Records
from sar_agent.agent.report import Report, Result
from sar_agent.agent.reroute import Done, Rerouter
from sar_agent.agent.show import Show
from sar_agent.agent.standing import InstalledRoutes
from sar_agent.agent.state import State
from sar_agent.agent.update_strategy import UpdateMethod
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, SarError
from sar_agent.install.transit import NotSafe, transition_to
from sar_agent.jobs.filter import host_sets
from sar_agent.opensm.plugin_install import NotYet
from sar_agent.quality import Measures
from sar_agent.util.backoff import Backoff


class Actor:
    """What failed is tried again, but ever less often."""

    def __init__(
        self,
        config: Config,
        rerouter: Rerouter,
        standing: InstalledRoutes,
        show: Show,
        pacing: Pacing,
        records: Records,
    ) -> None:
        self.engine, self.rerouter, self.standing = config.agent.engine, rerouter, standing
        self.show, self.pacing, self.records = show, pacing, records
        self.metrics = show.metrics
        self.backoff = Backoff(config.agent.interval_seconds, config.agent.backoff_max_seconds)

    def act(
        self,
        decision: Decision,
        look: Observation,
        state: State | None,
        obstacle: str,
        before: Measures | None,
    ) -> Report:
        """Raises no `SarError`; `obstacle` says why nothing is installed, `before` is what the
        routes in force are worth."""
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
        except NotYet as error:
            if isinstance(error, NotSafe):
                self.metrics.transitions.labels(error.transition.way.value).inc()
            self._count(decision.reason, Result.LATER)
            return Report(Result.LATER, f"{decision.why}; {error}", decision.reason)
        except SarError as error:
            self.backoff.failed(key)
            if isinstance(error, CheckFailed):
                self.metrics.check_failures.inc()
            if isinstance(error, NotSafe):
                self.metrics.transitions.labels(error.transition.way.value).inc()
            self._count(decision.reason, Result.FAILED)
            self.records.add(
                decision,
                Result.FAILED,
                jobs=len(look.records),
                seconds=time.monotonic() - start,
                before=before,
                phases=self.rerouter.updates.told(),
                message=str(error),
            )
            return Report(Result.FAILED, f"{decision.why}; {error}", decision.reason)
        self.backoff.succeeded()
        if done.read_back is None:  # what would have happened?
            routes = self.standing.tables.look(look.status, done.plan.fabric)
            done = replace(done, plan=transition_to(done.plan, routes, self.metrics.timed))
        if done.plan.transition:
            self.metrics.transitions.labels(done.plan.transition.way.value).inc()
        plan, achieved = done.plan, None
        after = State(
            generation=plan.generation,
            engine=self.engine,
            jobs=host_sets(done.records),
            fabric_digest=plan.fabric.digest.hex(),
            installed_at=time.time(),
        )
        if done.read_back is None:
            self.standing.plans(plan, after.made)
            result, words = Result.PLANNED, "planned, not installed"
            if not obstacle:
                result, words = Result.LATER, done.choice.why if done.choice else TOO_LITTLE
        else:
            result = Result.INSTALLED
            assert done.changed
            words = (
                f"generation {plan.generation} is in force, {done.changed.entries} entries in "
                f"{done.changed.blocks} blocks changed"
            )
            if done.choice and done.choice.how is not UpdateMethod.DIRECT:
                words += f" ({done.choice.how.value}: {done.choice.why})"
            achieved = self._installed(done, after)
        self.show.plan(plan)
        self._count(decision.reason, result)
        seconds = time.monotonic() - start
        if result is not Result.LATER:  # nothing that history tells of
            self.pacing.acted()
            self.records.add(
                decision,
                result,
                jobs=len(plan.mix.jobs),
                seconds=seconds,
                before=before,
                done=done,
                achieved=achieved,
                phases=self.rerouter.updates.told(),
            )
        return Report(
            result,
            f"{decision.why}; {words} ({plan.routes.engine}, {len(plan.mix.jobs)} jobs, "
            f"{seconds:.2f} s; dark fiber {plan.measures.dark_fiber_ratio:.1%}, effective EFI max "
            f"{plan.measures.effective_efi_max}, largest load {plan.measures.load_max:.2f})",
            decision.reason,
        )

    def _installed(self, done: Done, state: State) -> Measures | None:
        """Only now may the state say so; the file of the generation it names is there first.
        Returns what the tables that were read back are worth."""
        assert done.read_back is not None and done.changed
        plan = done.plan
        self.standing.keep(plan)
        self.standing.store.save(state)
        status = self.show.ask_status()
        self.standing.took(plan, done.read_back, status, state.made)
        self.metrics.generation_wanted.set(plan.generation)
        self.metrics.entries_changed.set(done.changed.entries)
        self.metrics.entries_changed_sum.inc(done.changed.entries)
        self.metrics.blocks_changed.set(done.changed.blocks)
        return self.show.in_force(status, plan.fabric, plan.mix)

    def _count(self, reason: Reason, result: Result) -> None:
        self.metrics.reroutes.labels(reason.value, result.value).inc()
