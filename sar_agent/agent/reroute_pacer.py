"""When to observe, and when to reroute.

Events only make the agent observe sooner; it acts only on what the queue shows. Three rules keep it
from acting too often: a burst of events is one observation (`debounce_seconds`); two installs
because of jobs are some time apart (`min_install_interval_seconds`); and, with `min_gain`, a change
that would bring little waits for more to come. `max_staleness_seconds` bounds all of them: a change
is acted on that long after it was first observed, however little it brings. A repair (another
engine in force, another fabric) never waits. Where a plan brings nothing at all, the routes in
force stay, however long; only when no job has run for `max_staleness_seconds`, routes without jobs
replace them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sar_agent.agent.decide import Reason
from sar_agent.agent.observe_site import Observation
from sar_agent.config.model import AgentConfig
from sar_agent.install.plan import Plan
from sar_agent.jobs.filter import host_sets, young
from sar_agent.quality import Measures
from sar_agent.routing.collectives.objective import gain_of
from sar_agent.util.pace import Pace

PATIENT = frozenset({Reason.JOBS, Reason.TOPOLOGY, Reason.ENGINE})
"""Reasons that can wait: the routes in force serve everyone, if not as well as others would."""
TOO_LITTLE = "other routes would gain too little; waiting for more to change"
STAY = frozenset({Reason.JOBS, Reason.TOPOLOGY})
"""Those of them for which the routes in force stay where a plan is no better."""
AS_GOOD = "the last routes serve these jobs as well as other ones would; they stay"
ALIKE = 0.01
"""Routes in force of which a plan takes so much less time are as good."""

LOOK, QUIET, BURST, AGAIN, REST, STALE = "look", "quiet", "burst", "again", "rest", "stale"
"""Causes of an observation: the interval is over; no event came for a while, or events come all the
time; somebody asked for it; the next install may be; the change that is not acted on is old."""


class Pacing:
    """The daemon calls `heard`, `begin` and `end`, a pass the rest. Unless `patient`, every change
    is acted on at once: a person who runs `once` has chosen the moment."""

    def __init__(
        self, config: AgentConfig, *, patient: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.config, self.patient, self.pace = config, patient, Pace(clock)
        self._over: set[str] = set()
        """Waits that were over when the last observation began."""
        self._waits: tuple[object, float] | None = None
        """Jobs and fabric for which a plan gained too little, and its gain."""
        self._as_good: object = None
        """Jobs and fabric that the routes in force serve as well as the plan would."""

    def heard(self, at: float) -> None:
        """An event came at `at`, by the clock."""
        self.pace.put_off(QUIET, self.config.debounce_seconds, at)
        if BURST not in self.pace:
            self.pace.put_off(BURST, self.config.debounce_max_seconds, at)

    def begin(self) -> None:
        """An observation begins: it sees the effect of all events until now."""
        self.pace.forget(QUIET, BURST, AGAIN)
        self._over = {
            cause for cause in (REST, STALE) if cause in self.pace and self.pace.due(cause)
        }

    def end(self) -> None:
        """The pass is over."""
        self.pace.put_off(LOOK, self.config.interval_seconds)

    def left(self) -> float:
        """Seconds until the next observation is due."""
        causes = {QUIET, BURST, AGAIN}
        # A change that has to wait is observed again when its wait is over; once, so that an
        # observation that fails (Slurm is away) is not repeated without a pause.
        if STALE in self.pace:
            causes |= {REST, STALE} - self._over
        waits = [self.pace.left(cause) for cause in causes if cause in self.pace]
        return min([self.pace.left(LOOK), *waits])

    def calm(self) -> None:
        """There is nothing to act on."""
        self.pace.forget(STALE)

    def again(self, seconds: float = 0.0) -> None:
        """The next pass is due in `seconds`, or sooner."""
        if AGAIN not in self.pace or self.pace.left(AGAIN) > seconds:
            self.pace.put_off(AGAIN, seconds)

    def acted(self) -> None:
        """Other routes are installed, or planned where nothing is installed."""
        self.pace.put_off(REST, self.config.min_install_interval_seconds)
        self.calm()

    def observed(self, site: Observation) -> None:
        """Young jobs count from a known moment on."""
        age, now = self.config.min_job_age_seconds, time.time()
        starts = [job.start for job in young(site.records, now, age) if job.start is not None]
        if starts:
            self.again(min(starts) + age - now)

    def postponed(self, reason: Reason, site: Observation) -> str:
        """Why not to act now; empty where it is time."""
        if not self.patient:
            return ""
        basis = planning_basis(site)
        if reason in STAY and self._as_good == basis:
            self.calm()
            return AS_GOOD
        if wait := self.rest(reason):
            return f"the last reroute was a moment ago, the next may be in {wait:.1f} s"
        if reason in PATIENT and self._waits and self._waits[0] == basis:
            return "" if self.worth(self._waits[1]) else TOO_LITTLE
        return ""

    def rest(self, reason: Reason) -> float:
        """There is `reason` to act: the seconds to wait, 0 to act now."""
        if reason not in PATIENT:
            return 0.0
        if STALE not in self.pace:
            self.pace.put_off(STALE, self.config.max_staleness_seconds)
        return self.pace.left(REST)

    def worth(self, gain: float) -> bool:
        """Whether to install now a plan with this gain (a share; below 0: none at all)."""
        return self.config.min_gain <= gain or (STALE in self.pace and self.pace.due(STALE))

    def held_back(
        self, reason: Reason, site: Observation, before: Measures | None, plan: Plan
    ) -> str:
        """Why the plan is not worth an install now; empty where it is."""
        self._waits = self._as_good = None
        if not self.patient or before is None or reason not in PATIENT:
            return ""
        basis, gain = planning_basis(site), self._gain(before, plan)
        amended = site.status and site.status.amendments
        asked = self.config.min_gain > 0  # without, every change of the jobs is acted on
        if asked and reason in STAY and not amended and gain <= self._alike():
            gain = -1.0
            if plan.mix.jobs:
                self._as_good = basis
                self.calm()
                return AS_GOOD
        if self.worth(gain):
            return ""
        self._waits = basis, gain
        return TOO_LITTLE

    def _alike(self) -> float:
        """A gain that makes no difference."""
        return ALIKE if self.config.objective == "load" else 1 - 1 / self.config.target

    def _gain(self, before: Measures, plan: Plan) -> float:
        """What the engine's objective gains; with `routes` by which share the largest effective EFI
        falls."""
        if self.config.objective == "load":
            gain = gain_of(plan.measures.collective_times, before.collective_times)
        else:
            old, new = float(before.effective_efi_max), float(plan.measures.effective_efi_max)
            gain = 1 - new / old if old else 0.0
        return max(0.0, gain)


def planning_basis(site: Observation) -> tuple[object, ...]:
    """What a plan depends on: where one failed, or was not worth it, another basis may do."""
    return host_sets(site.records), site.fabric.digest, site.status and site.status.process
