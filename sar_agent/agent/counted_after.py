"""The first window of counters after an install, into the history beside the last one before.

The two can be compared if the same multi-switch jobs ran on the same fabric during both, all the
time, and the agent's routes were in force.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable

from sar_agent.agent.counted_traffic import CountedTraffic
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.state import State
from sar_agent.counters.steady_windows import SteadySpans
from sar_agent.jobs.filter import host_sets


class CountedAfter:
    """Asked in each pass, after counters were read."""

    def __init__(self, counted: CountedTraffic, decisions: DecisionLog) -> None:
        self.counted, self.decisions = counted, decisions
        self._spans = SteadySpans()
        self._windows = 0
        """Windows that were looked at."""
        self._noted = 0
        """The generation whose window after is in the history."""
        self._ends: deque[tuple[float, Hashable]] = deque(maxlen=8)
        """When the last windows ended, Unix seconds, with the jobs that ran all the time; None if
        they changed."""

    def observe(self, site: Observation, state: State | None) -> None:
        """Never raises."""
        if self.counted.source is not None:
            self.counted.unexpected.guard(
                "counters", lambda: self._observe(site, state), None, part=True
            )

    def _observe(self, site: Observation, state: State | None) -> None:
        # Hashes in place of the sets: thousands of them are remembered.
        ids = frozenset(record.id for record in site.records)
        jobs = site.fabric.digest, hash(host_sets(site.records)), hash(ids)
        ours = site.in_force is not None and site.in_force.status.ours
        self._spans.add(time.monotonic(), jobs if ours else None)
        if self.counted.windows != self._windows:
            self._windows = self.counted.windows
            self._window(state, self._spans.over(*self.counted.span))

    def _window(self, state: State | None, jobs: Hashable | None) -> None:
        """A new window, with the jobs that ran all the time."""
        window, found, ended = self.counted.window, self.counted.summary(), self.counted.ended_at
        new = state is not None and self._noted != state.generation
        if state and new and window and found and ended - window.seconds >= state.installed_at:
            self._noted = state.generation
            earlier = [what for end, what in self._ends if end <= state.installed_at]
            same = jobs is not None and bool(earlier) and earlier[-1] == jobs
            self.decisions.note(state.generation, counted_after=found | {"same_jobs": same})
        self._ends.append((ended, jobs))
