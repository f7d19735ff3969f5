"""Routes on trial: they stay for some windows, and go back unless ports counted better.

Tried are reroutes for which neither jobs nor cables gave the reason, so that all that differs
between the windows before and after should be the routes. The way back is a plan like any other,
checked and proved, with the tables of the earlier generation. Whatever makes windows incomparable
(jobs that ended, other cables, other tables) ends a trial without a verdict.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Hashable

from sar_agent.agent.counted_traffic import CountedTraffic
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.state import State
from sar_agent.agent.trial_state import Phase, SavedTrial, TrialStore
from sar_agent.config.counters import CountersConfig
from sar_agent.counters.ratio_interval import LEAST_WINDOWS
from sar_agent.counters.steady_windows import SteadySpans, measure_of
from sar_agent.errors import SarError
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.jobs.filter import host_sets
from sar_agent.routing.lid_offsets import base_of
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics

log = logging.getLogger(__name__)
TRIED = frozenset({Reason.WEIGHTS})
PATIENCE = 4.0
"""Times the length of all windows after which a trial is over,"""
GRACE = 600.0
"""but not before so many seconds: daemons restart meanwhile."""
AGAIN = 86400.0
"""Seconds for which routes that went back are not followed by others of their kind, unless jobs
or cables change."""
FAILURES = 3
"""Ways back that fail before the tried routes stay."""
MOST_BEFORE = 100


class Trials:
    """Asked in each pass: `observe`, perhaps `due` and `prepare`, and `ended`."""

    def __init__(
        self,
        settings: CountersConfig,
        counted: CountedTraffic,
        installed: InstalledRoutes,
        decisions: DecisionLog,
        metrics: Metrics,
        store: TrialStore,
    ) -> None:
        self.settings, self.counted = settings, counted
        self.installed, self.decisions, self.metrics = installed, decisions, metrics
        self.store = store
        self.last: SavedTrial | None = store.load()
        """The trial that runs, or the last one."""
        self._prepared: SavedTrial | None = None
        """A trial whose routes are not in force yet."""
        self._spans = SteadySpans()
        self._before: deque[tuple[Hashable, float]] = deque(maxlen=MOST_BEFORE)
        """Measures of the last windows with what held in them."""
        self._windows = 0
        """Windows that were looked at."""
        self._seen: tuple[Hashable, ...] = ()
        """Cables and jobs in this pass."""
        self._hashed: tuple[Routes | None, str] = (None, "")
        self._noted = 0
        """The generation whose window after is in the history."""
        self._ends: deque[tuple[float, Hashable]] = deque(maxlen=8)
        """When the last windows ended, Unix seconds, with the jobs that ran all the time; None
        where they changed."""

    @property
    def running(self) -> SavedTrial | None:
        """The trial that is not over."""
        return self.last if self.last and self.last.active else None

    def observe(self, site: Observation, state: State | None) -> None:
        """After counters were read: adds a new window to the trial, and judges it."""
        if self.counted.source is None and self.running is None:
            return
        tables = self._tables(site.in_force)
        self._seen = self._jobs(site)
        self._spans.add(time.monotonic(), (tables, *self._seen) if tables else None)
        if trial := self.running:
            self._follow(trial, site, state, tables)
        if self.counted.windows != self._windows:
            self._windows = self.counted.windows
            self._window(site, state)
        if trial := self.running:
            self._judge(trial)
        self.metrics.trial_running.set(self.running is not None)

    def blocks(self, site: Observation) -> bool:
        """Whether no reroute is to be tried, because a trial runs, or one went back and nothing
        has changed since."""
        trial = self.last
        if not self.settings.trial_windows or trial is None:
            return False
        same = (
            trial.fabric_digest == site.fabric.digest.hex()
            and trial.jobs == host_sets(site.records)
            and time.time() < trial.ended + AGAIN
        )
        return trial.active or (trial.phase == "went_back" and same)

    def obstacle(self, site: Observation, state: State | None) -> str:
        """Why routes of now could not be tried; empty where they could, or trials are off."""
        if not self.settings.trial_windows:
            return ""
        key = self._now(site)
        count = sum(what == key for what, _ in self._before)
        if count < LEAST_WINDOWS:
            return (
                f"a trial needs {LEAST_WINDOWS} windows of these jobs on the routes in force, "
                f"{count} were counted"
            )
        if state is None:
            return "no generation is known to go back to"
        try:
            kept = file_to_routes(site.fabric, self.installed.generations.read(state.generation))
        except SarError as error:
            return f"there is nothing to go back to: {error}"
        if base_of(kept).digest.hex() != self._tables(site.in_force):
            return "the routes in force have been repaired since, so there is nothing to go back to"
        return ""

    def due(self) -> str:
        """Why to go back now; empty where not to."""
        trial = self.running
        return trial.why if trial and trial.phase == "going_back" else ""

    def earlier(self, site: Observation) -> tuple[Routes, dict[str, int]]:
        """The routes to go back to, and the levels of weights that they were made for. Raises
        `SarError` where they are not kept any more."""
        assert self.last is not None
        file = self.installed.generations.read(self.last.earlier)
        return file_to_routes(site.fabric, file), dict(self.last.levels)

    def give_up(self, why: str) -> None:
        """The tried routes stay, since there is no way back."""
        if trial := self.running:
            self._end(trial, "undecided", why)

    def prepare(
        self,
        reason: Reason,
        plan: Plan,
        site: Observation,
        state: State | None,
        levels: dict[str, int],
    ) -> None:
        """Before `plan` is installed: write down that it is a trial, if it can be one. `levels` are
        those of before. Raises `InputError` where the disk does not take that."""
        self._prepared = None
        if not self.settings.trial_windows or reason not in TRIED:
            return
        why_not = self.obstacle(site, state)
        if why_not or state is None:
            log.info("these routes are not on trial: %s", why_not)
            return
        key, windows, now = self._now(site), self.settings.trial_windows, time.time()
        before = [value for what, value in self._before if what == key][-windows:]
        assert self.counted.window is not None
        self._prepared = SavedTrial(
            generation=plan.generation,
            earlier=state.generation,
            reason=reason.value,
            tables=base_of(plan.routes).digest.hex(),
            fabric_digest=site.fabric.digest.hex(),
            jobs=host_sets(site.records),
            ids=frozenset(record.id for record in site.records),
            levels=levels,
            measure=self.settings.trial_measure,
            windows=windows,
            before=tuple(before),
            began=now,
            until=now + max(GRACE, PATIENCE * windows * self.counted.window.seconds),
        )
        self.store.save(self._prepared)

    def ended(self, report: Report) -> None:
        """The pass is over: a trial begins, or has gone back, or failed to."""
        installed = report.result is Result.INSTALLED and self._seen
        tables = self._tables(self.installed.last_read) if installed else ""
        if tables and self._seen:
            self._spans.add(time.monotonic(), (tables, *self._seen))
        prepared, self._prepared = self._prepared, None
        trial = self.running
        if prepared is not None:
            if report.result is Result.INSTALLED:
                self._begin(prepared)
            elif self.last is not None:  # the file names a trial that did not begin
                self._keep(self.last)
            else:
                self.store.remove()
        elif trial and report.reason is Reason.TRIAL:
            if report.result is Result.INSTALLED:
                self._end(trial, "went_back", trial.why)
            elif report.result is Result.FAILED:
                self._failed(trial, report.sentence)
        self.metrics.trial_running.set(self.running is not None)

    def _begin(self, prepared: SavedTrial) -> None:
        """What came into force may be less than what was planned."""
        state = self.installed.store.load()
        found = self.installed.last_read
        generation = state.generation if state else prepared.generation
        took = time.time() - prepared.began
        update = {
            "tables": self._tables(found),
            "generation": generation,
            "began": prepared.began + took,
            "until": prepared.until + took,
        }
        self._keep(prepared.model_copy(update=update))
        log.info("generation %d is on trial for %d windows", generation, prepared.windows)

    def _failed(self, trial: SavedTrial, sentence: str) -> None:
        failures = trial.failures + 1
        if failures < FAILURES:
            self._keep(trial.model_copy(update={"failures": failures}))
        else:
            self._end(trial, "undecided", f"the way back failed {failures} times ({sentence})")

    def _follow(
        self,
        trial: SavedTrial,
        site: Observation,
        state: State | None,
        tables: str,
    ) -> None:
        """Ends a trial whose windows cannot be compared any more."""
        why, gone = "", trial.ids - {record.id for record in site.records}
        if not self.settings.trial_windows:
            why = "trials were switched off"
        elif trial.fabric_digest != site.fabric.digest.hex():
            why = "cables or switches changed"
        elif gone:
            why = f"{len(gone)} of its jobs ended" if len(gone) > 1 else "one of its jobs ended"
        elif tables and (tables != trial.tables or state is None):
            why = "other routes are in force"
        elif state is not None and state.jobs != trial.jobs:
            why = "routes were made for other jobs"
        if why:
            self._end(trial, "undecided", f"{why}, so it has no verdict{trial.left_out}")

    def _window(self, site: Observation, state: State | None) -> None:
        """A new window: into the history, the record of before, and the trial."""
        window, (begin, end) = self.counted.window, self.counted.span
        if window is None:
            return
        key = self._spans.over(begin, end)
        self._note(site, state, key)
        value = measure_of(site.fabric, window, self.settings.trial_measure)
        if key is not None and value is not None:
            self._before.append((key, value))
        trial = self.running
        if trial is None or trial.phase != "running":
            return
        if self.counted.ended_at - window.seconds < trial.began:
            return  # it began before the routes came into force
        if key != self._key(trial):
            trial = trial.model_copy(update={"other_jobs": trial.other_jobs + 1})
        elif value is None or trial.measure != self.settings.trial_measure:
            trial = trial.model_copy(update={"unusable": trial.unusable + 1})
        else:
            trial = trial.model_copy(update={"after": (*trial.after, value)})
        self._keep(trial)

    def _judge(self, trial: SavedTrial) -> None:
        if trial.phase != "running":
            return
        found = trial.interval
        if found is not None and len(trial.after) >= trial.windows:
            if found.better:
                self._end(trial, "stays", f"the routes stay: {trial.numbers()}")
            else:
                self._go_back(trial, f"counts did not get better: {trial.numbers()}")
        elif time.time() > trial.until:
            self._go_back(trial, f"too few windows could be compared: {trial.numbers()}")

    def _go_back(self, trial: SavedTrial, why: str) -> None:
        why = f"generation {trial.generation} was on trial, and {why}; back to {trial.earlier}"
        self._keep(trial.model_copy(update={"phase": "going_back", "why": why}))

    def _end(self, trial: SavedTrial, phase: Phase, why: str) -> None:
        update = {"phase": phase, "why": why, "ended": time.time()}
        trial = trial.model_copy(update=update)
        self._keep(trial)
        self.metrics.trials.labels(phase).inc()
        self.decisions.note(trial.generation, trial=trial.summary())
        log.info("the trial of generation %d is over: %s", trial.generation, why)

    def _keep(self, trial: SavedTrial) -> None:
        self.last = trial
        self.decisions.problems.problem("trial", self.store.try_to_save(trial))

    def _note(self, site: Observation, state: State | None, key: Hashable | None) -> None:
        """The first window that began after an install, into the row of the install."""
        window, found, ended = self.counted.window, self.counted.summary(), self.counted.ended_at
        jobs = None if key is None else self._jobs(site)
        new = state is not None and self._noted != state.generation
        if state and new and window and found and ended - window.seconds >= state.installed_at:
            self._noted = state.generation
            earlier = [what for end, what in self._ends if end <= state.installed_at]
            same = jobs is not None and bool(earlier) and earlier[-1] == jobs
            self.decisions.note(state.generation, counted_after=found | {"same_jobs": same})
        self._ends.append((ended, jobs))

    def _jobs(self, site: Observation) -> tuple[Hashable, ...]:
        """Hashes in place of the sets: thousands of them are remembered."""
        ids = frozenset(record.id for record in site.records)
        return site.fabric.digest, hash(host_sets(site.records)), hash(ids)

    def _now(self, site: Observation) -> Hashable:
        return self._tables(site.in_force), *self._jobs(site)

    def _key(self, trial: SavedTrial) -> Hashable:
        cables = bytes.fromhex(trial.fabric_digest)
        return trial.tables, cables, hash(trial.jobs), hash(trial.ids)

    def _tables(self, in_force: InForce | None) -> str:
        """Digest of the tables of LID offset 0, hexadecimal; empty where they are not known."""
        if in_force is None or not in_force.confirmed:
            return ""
        if self._hashed[0] is not in_force.routes:
            self._hashed = in_force.routes, base_of(in_force.routes).digest.hex()
        return self._hashed[1]
