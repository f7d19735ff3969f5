"""What ports counted, beside what was predicted, after each pass; and the first window after an
install, into the history beside the last one before.

The two windows can be compared if the same multi-switch jobs ran on the same fabric during both,
all the time, and the agent's routes were in force. Nothing here changes routes.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Hashable

from sar_agent.agent.current import Current
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.state import State
from sar_agent.counters import Comparison, CounterWindow, align, compare
from sar_agent.counters.last_window import LastWindow, hot_words
from sar_agent.counters.predicted import PredictedLoads, SteadySpans
from sar_agent.counters.sources import CounterSource, counter_source
from sar_agent.errors import SarError
from sar_agent.jobs.filter import host_sets
from sar_agent.quality.channel_traffic import Traffic, traffic_of

log = logging.getLogger(__name__)


class CountedTraffic:
    """Compares each window once, and puts it into `found`. Without a source it does nothing."""

    def __init__(self, parts: Parts) -> None:
        self.settings, self.metrics = parts.config.counters, parts.metrics
        self.problems, self.found = parts.problems[0], parts.window
        self.source: CounterSource | None = counter_source(parts.config)
        self.after = CountedAfter(parts.committer.decisions)
        self.loads = PredictedLoads()
        self._state: State | None = None
        """The state after the last pass."""
        self._identity = ""
        """The last window that was looked at."""
        self._traffic: Traffic | None = None
        self._hot: tuple[str, ...] = ()
        """The links that were last logged as hot but not predicted."""

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """What is wrong with a window is logged once."""
        if self.source is None:
            return
        self.found.why_not = "the first window is not complete yet"
        if site is None:
            return
        now, load = time.monotonic(), current.measures.channel_load if current.measures else None
        self.loads.add(now, site.fabric.digest, load)
        self.after.passed(site, now)
        # A window that has ended is of what was in force before an install.
        state = self._state if report.result is Result.INSTALLED else current.state
        self._state = current.state
        if window := self._new_window(self.source, site, now):
            self.after.add(window, self.found, state, now)

    def _new_window(
        self, source: CounterSource, site: Observation, now: float
    ) -> CounterWindow | None:
        found, name = self.found, self.settings.source
        try:
            readings = source.read()
            if readings.identity == self._identity:
                return None
            window = align(site.fabric, readings)
            comparison = self._compare(site, window, now)
            self._identity = readings.identity
        except SarError as error:
            found.problem = f"counters: {error}"
            self.problems.problem("counters", found.problem)
            self.metrics.show_left_out(name)
            return None
        found.comparison, found.window, found.problem = comparison, window, ""
        found.cables, found.ended_at = site.fabric.digest, time.time() - window.ended
        self.metrics.show_comparison(name, comparison)
        self.problems.problem("counters", "", "counters can be used again")
        hot = tuple(sorted(link.link for link in comparison.hot))
        if hot != self._hot:  # a ProblemLog would take another link for the same problem
            if hot:
                log.warning("%s", hot_words(comparison))
            else:
                log.info("every hot link is predicted again")
            self._hot = hot
        return window

    def _compare(self, site: Observation, window: CounterWindow, now: float) -> Comparison:
        end = now - window.ended
        predicted = self.loads.over(end - window.seconds, end, site.fabric.digest)
        if site.in_force is not None:
            self._traffic = traffic_of(site.fabric, site.mix, site.in_force.routes)
        return compare(
            site.fabric,
            window,
            predicted,
            self._traffic if site.in_force is not None else None,
            hot_load=self.settings.hot_load,
            hot_factor=self.settings.hot_factor,
        )


class CountedAfter:
    """Finds the first window after each install."""

    def __init__(self, decisions: DecisionLog) -> None:
        self.decisions = decisions
        self._spans = SteadySpans()
        self._noted = 0
        """The generation whose window after is in the history."""
        self._ends: deque[tuple[float, Hashable]] = deque(maxlen=8)
        """When the last windows ended, Unix seconds, with the jobs that ran all the time; None if
        they changed."""

    def passed(self, site: Observation, now: float) -> None:
        """The jobs of a pass."""
        # Hashes in place of the sets: thousands of them are remembered.
        ids = frozenset(record.id for record in site.records)
        jobs = site.fabric.digest, hash(host_sets(site.records)), hash(ids)
        ours = site.in_force is not None and site.in_force.status.ours
        self._spans.add(now, jobs if ours else None)

    def add(
        self, window: CounterWindow, found: LastWindow, state: State | None, now: float
    ) -> None:
        """A new window, during which `state` held."""
        end, ended = now - window.ended, found.ended_at
        jobs = self._spans.over(end - window.seconds, end)
        new = state is not None and self._noted != state.generation
        if state and new and ended - window.seconds >= state.installed_at:
            self._noted = state.generation
            earlier = [what for end, what in self._ends if end <= state.installed_at]
            same = jobs is not None and bool(earlier) and earlier[-1] == jobs
            counted_after = (found.summary() or {}) | {"same_jobs": same}
            self.decisions.note(state.generation, counted_after=counted_after)
        self._ends.append((ended, jobs))


observer = CountedTraffic
