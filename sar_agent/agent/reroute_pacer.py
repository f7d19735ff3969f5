"""When to observe, and when to reroute: `ReroutePacer`, a pure function of events, passes and
installs, and `Pacing`, which applies it to passes.

Events only make the agent observe sooner; it acts only on what the queue shows. Three rules keep it
from acting too often: a burst of events is one observation (`debounce`); two installs because of
jobs are some time apart (`min_install`); and, with `min_gain`, a change that would bring little
waits for more to come (`worth`). `max_staleness` bounds all of them: a change is acted on that long
after it was first observed, however little it brings. A repair (another engine in force, another
fabric) never waits. Where a plan brings nothing at all, the routes in force stay, however long;
only when no job has run for `max_staleness`, routes without jobs replace them.

All times are seconds of one clock that does not jump; the pacer neither reads a clock nor sleeps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

from sar_agent.agent.decide import Reason
from sar_agent.agent.observe_site import Observation
from sar_agent.config.model import AgentConfig
from sar_agent.install.plan import Plan
from sar_agent.jobs.filter import host_sets, young
from sar_agent.quality import Measures

PATIENT = frozenset({Reason.JOBS, Reason.TOPOLOGY, Reason.ENGINE})
"""Reasons that can wait: the routes in force serve everyone, if not as well as others would."""
TOO_LITTLE = "other routes would gain too little; waiting for more to change"
STAY = frozenset({Reason.JOBS, Reason.TOPOLOGY})
"""Those of them for which the routes in force stay where a plan is no better."""
AS_GOOD = "the routes in force serve these jobs as well as other ones would; they stay"
PHASES = 1.01
"""How many times the phase contention of a plan routes that are as good may have."""


@dataclass(frozen=True)
class PaceLimits:
    """Seconds, and a share. `min_install` and `debounce_most` are at most `max_staleness`."""

    interval: float = 30.0
    debounce: float = 0.5
    debounce_most: float = 3.0
    min_install: float = 5.0
    min_gain: float = 0.0
    max_staleness: float = 60.0

    @classmethod
    def of(cls, config: AgentConfig) -> PaceLimits:
        """The limits as configured."""
        return cls(
            config.interval_seconds,
            config.debounce_seconds,
            config.debounce_max_seconds,
            config.min_install_interval_seconds,
            config.min_gain,
            config.max_staleness_seconds,
        )


class ReroutePacer:
    """The loop calls `heard`, `begin`, then one of `calm` and `hold_back`; `installed`; `end`."""

    def __init__(self, pace: PaceLimits) -> None:
        self.pace = pace
        self._first = self._last = inf
        """Times of the events that no observation has answered."""
        self._began = self._ended = -inf
        self._installed = -inf
        self._changed = inf
        """When the change that is not acted on yet was first observed."""
        self._ripe = inf

    def heard(self, at: float) -> None:
        """An event came at `at`."""
        self._first = min(self._first, at)
        self._last = at if self._last == inf else max(self._last, at)

    def look_at(self) -> float:
        """When the next observation is due; in the past if it is overdue."""
        pace, due = self.pace, self._ended + self.pace.interval
        if self._first < inf:
            due = min(due, self._last + pace.debounce, self._first + pace.debounce_most)
        # A change that has to wait is observed again when its wait is over; once, so that an
        # observation that fails (Slurm is away) is not repeated without a pause.
        for at in (self._rest_until(), self._stale_at(), self._ripe):
            if at > self._began:
                due = min(due, at)
        return due

    def begin(self, now: float) -> None:
        """An observation begins: it sees the effect of all events until now."""
        self._first = self._last = inf
        self._ripe = inf
        self._began = now

    def ripe(self, at: float) -> None:
        """The observation shows a job that is old enough to count only at `at`."""
        self._ripe = min(self._ripe, at)

    def end(self, now: float) -> None:
        """The pass is over."""
        self._ended = now

    def calm(self) -> None:
        """The observation gives no reason to act."""
        self._changed = inf

    def hold_back(self, now: float, reason: Reason) -> float:
        """The observation gives `reason` to act: the seconds to wait, 0 to act now."""
        if reason not in PATIENT:
            return 0.0
        self._changed = min(self._changed, now)
        return max(0.0, self._rest_until() - now)

    def worth(self, now: float, gain: float) -> bool:
        """Whether to install now a plan with this gain (a share; below 0: none at all)."""
        return self.pace.min_gain <= gain or now >= self._stale_at()

    def installed(self, now: float) -> None:
        """Other routes are in force (or were planned, where nothing is installed)."""
        self._installed, self._changed = now, inf

    def _rest_until(self) -> float:
        return self._installed + self.pace.min_install if self._changed < inf else -inf

    def _stale_at(self) -> float:
        return self._changed + self.pace.max_staleness


class Pacing:
    """Applies a pacer to passes. Without one, every change is acted on at once: a person who runs
    `once` has chosen the moment."""

    def __init__(self, config: AgentConfig, pacer: ReroutePacer | None) -> None:
        self.config, self.pacer = config, pacer
        self._waits: tuple[object, float] | None = None
        """Jobs and fabric for which a plan gained too little, and its gain."""
        self._as_good: object = None
        """Jobs and fabric that the routes in force serve as well as the plan would."""

    def calm(self) -> None:
        """There is nothing to act on."""
        if self.pacer:
            self.pacer.calm()

    def again(self, seconds: float = 0.0) -> None:
        """The next pass is due in `seconds`, or sooner."""
        if self.pacer:
            self.pacer.ripe(time.monotonic() + seconds)

    def acted(self) -> None:
        """Other routes are installed, or planned where nothing is installed."""
        if self.pacer:
            self.pacer.installed(time.monotonic())

    def observed(self, site: Observation) -> None:
        """Young jobs count from a known moment on."""
        age, now = self.config.min_job_age_seconds, time.time()
        starts = [job.start for job in young(site.records, now, age) if job.start is not None]
        if self.pacer and starts:
            self.pacer.ripe(time.monotonic() + min(starts) + age - now)

    def postponed(self, reason: Reason, site: Observation) -> str:
        """Why not to act now; empty where it is time."""
        if self.pacer is None:
            return ""
        now, basis = time.monotonic(), planning_basis(site)
        if reason in STAY and self._as_good == basis:
            self.pacer.calm()
            return AS_GOOD
        if wait := self.pacer.hold_back(now, reason):
            return f"the last reroute was a moment ago, the next may be in {wait:.1f} s"
        if reason in PATIENT and self._waits and self._waits[0] == basis:
            return "" if self.pacer.worth(now, self._waits[1]) else TOO_LITTLE
        return ""

    def held_back(
        self, reason: Reason, site: Observation, before: Measures | None, plan: Plan
    ) -> str:
        """Why the plan is not worth an install now; empty where it is."""
        self._waits = self._as_good = None
        if self.pacer is None or before is None or reason not in PATIENT:
            return ""
        now, basis, gain = time.monotonic(), planning_basis(site), self._gain(before, plan)
        amended = site.status and site.status.amendments
        asked = self.pacer.pace.min_gain > 0  # without, every change of the jobs is acted on
        if asked and reason in STAY and not amended and self._as_good_as(before, plan):
            gain = -1.0
            if plan.mix.jobs:
                self._as_good = basis
                self.pacer.calm()
                return AS_GOOD
        if self.pacer.worth(now, gain):
            return ""
        self._waits = basis, gain
        return TOO_LITTLE

    def _peak(self, measures: Measures) -> float:
        load = self.config.objective == "load"
        return measures.load_max if load else float(measures.effective_efi_max)

    def _gain(self, before: Measures, plan: Plan) -> float:
        """By which share the plan lowers the largest load, or the contention of phases."""
        phases = plan.measures.phase_contention_mean / before.phase_contention_mean
        old, new = self._peak(before), self._peak(plan.measures)
        return max(0.0, 1 - phases, 1 - new / old if old else 0.0)

    def _as_good_as(self, before: Measures, plan: Plan) -> bool:
        """Whether the routes in force are within `target` of the plan, and its phases as free of
        contention; a load up to 1 slows nobody."""
        most = self.config.target * self._peak(plan.measures)
        if self.config.objective == "load":
            most = max(1.0, most)
        phases = PHASES * plan.measures.phase_contention_mean
        return self._peak(before) <= most and before.phase_contention_mean <= phases


def planning_basis(site: Observation) -> tuple[object, ...]:
    """What a plan depends on: where one failed, or was not worth it, another basis may do."""
    return host_sets(site.records), site.fabric.digest, site.status and site.status.process
