"""Reroutes because of what ports counted: for other weights (`[counters] weights = "use"`: what
jobs really send, in place of full speed for all), and back from a trial (`trials.py`).

A reroute because of weights needs three things: `counters/weight_levels.py` allows one, a plan for
the proposed weights passes the checks, and it lowers the largest load that these weights give on
the routes in force by `weights_min_gain`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from sar_agent.agent.counted_traffic import CountedTraffic
from sar_agent.agent.decide import Decision, Reason
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.planner import Planner
from sar_agent.agent.state import State
from sar_agent.agent.trials import Trials
from sar_agent.agent.weight_store import SavedWeights, WeightStore
from sar_agent.config.counters import CountersConfig
from sar_agent.counters.weight_levels import WeightLevels, weights_of
from sar_agent.counters.weight_priors import WeightPriors
from sar_agent.errors import SarError
from sar_agent.install.plan import Plan
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures
from sar_agent.quality.channel_traffic import traffic_of

log = logging.getLogger(__name__)


class CountedWeights:
    """Asked once a pass, after all other reasons for a reroute."""

    def __init__(
        self,
        settings: CountersConfig,
        levels: WeightLevels,
        counted: CountedTraffic,
        planner: Planner,
        trials: Trials,
        store: WeightStore,
    ) -> None:
        self.settings, self.levels = settings, levels
        self.counted, self.planner, self.trials = counted, planner, trials
        self.store, self.priors = store, WeightPriors()
        self._jobs: dict[str, tuple[str, str]] = {}
        """User and name of the running jobs, by their ids."""
        if settings.weights != "off":
            saved = store.load()
            counted.weights.restore(saved.jobs)
            self.priors = WeightPriors(saved.priors)
            if settings.weights == "use":
                levels.use(saved.levels)
        self._before: dict[str, int] | None = None
        """The levels that are used again if the reroute under way does not come into force."""

    def observe(self, site: Observation, measures: Measures | None, state: State | None) -> None:
        """Compares the newest window, see `CountedTraffic.observe`, and follows a trial."""
        guard = self.counted.unexpected.guard
        guard("counters", lambda: self._follow(site), None, part=True)
        self.counted.observe(site, measures)
        guard("counters", lambda: self.trials.observe(site, state), None, part=True)
        guard("counters", self._save, None, part=True)

    def _follow(self, site: Observation) -> None:
        """Learns from jobs that have ended, and expects the same of those that have started."""
        if self.settings.weights == "off":
            return
        jobs = {record.id: (record.user, record.name) for record in site.records}
        weights, last = self.counted.weights, self._jobs
        for job in last.keys() - jobs.keys():
            if job in weights.weights:
                self.priors.learn(*last[job], weights.weights[job])
        given = {record.id for record in site.records if record.says_weight}
        expected = {}
        for job in jobs.keys() - last.keys() - given - weights.weights.keys():
            prior = self.priors.of(*jobs[job])
            if prior is not None:
                weights.expect(job, prior)
                expected[job] = prior
        self._jobs = jobs
        if expected and self.settings.weights == "use":
            self.levels.start(expected)

    def _save(self) -> None:
        if self.settings.weights == "off":
            return
        saved = SavedWeights(
            jobs=self.counted.weights.weights,
            levels=self.levels.levels if self._before is None else self._before,
            priors=self.priors.saved(),
        )
        problem = ""
        try:
            self.store.save(saved)
        except SarError as error:
            problem = f"{error}; counted weights are kept in memory only"
        self.counted.problems.problem("weights", problem)

    def back(self, site: Observation) -> Decision | None:
        """Back from a trial that did not get better; None where there is no such trial."""
        if not (why := self.trials.due()):
            return None
        try:
            routes, levels = self.trials.earlier(site)
        except SarError as error:
            self.trials.give_up(f"the way back failed: {error}")
            return None
        self.planner.use_next(site.fabric, routes)
        self._use(levels)
        return Decision(Reason.TRIAL, why)

    def due(self, site: Observation, state: State | None) -> Decision | None:
        """To reroute for other weights, which are used from then on; None where not to."""
        why = self._due(site, state) if self.settings.weights == "use" else ""
        return Decision(Reason.WEIGHTS, why) if why else None

    def prepare(self, reason: Reason, plan: Plan, site: Observation, state: State | None) -> None:
        """`plan` is about to be installed, see `Trials.prepare`."""
        levels = self.levels.levels if self._before is None else self._before
        self.trials.prepare(reason, plan, site, state, levels)

    def _use(self, levels: Mapping[str, int]) -> None:
        self._before = self.levels.levels
        self.levels.use(levels)

    def _due(self, site: Observation, state: State | None) -> str:
        if site.in_force is None or self.trials.blocks(site):
            return ""
        levels, now = self.levels, time.monotonic()
        given = {record.id for record in site.records if record.says_weight}
        jobs = [job.id for job in site.mix.jobs if job.id not in given]
        proposed = levels.propose(self.counted.weights.weights, jobs)
        if proposed == levels.levels or not levels.due(now):
            return ""
        if why_not := self.trials.obstacle(site, state):
            log.debug("other weights wait: %s", why_not)
            return ""
        levels.tried(now)
        mix = weighed(site.mix, levels.levels, proposed)
        present = float(traffic_of(site.fabric, mix, site.in_force.routes).load.max(initial=0.0))
        try:
            plan = self.planner.would_be(site.fabric, mix)
        except SarError as error:
            log.info("routes for the counted weights cannot be used: %s", error)
            return ""
        if plan is None or not present:
            return ""
        gain = 1 - plan.load_max / present
        changed = sum(proposed.get(j) != levels.levels.get(j) for j in {*proposed, *levels.levels})
        what = f"counted weights of {changed} job{'s' * (changed != 1)} changed"
        if gain < self.settings.weights_min_gain:
            log.info("%s; other routes would gain %.1f %%, too little", what, 100 * max(gain, 0))
            return ""
        self._use(proposed)
        return f"{what}; the largest load they give, {present:.2f}, can be {plan.load_max:.2f}"

    def ended(self, report: Report) -> None:
        """The pass has ended: without other routes, the old weights are used again."""
        self.counted.unexpected.guard(
            "counters", lambda: self.trials.ended(report), None, part=True
        )
        self.planner.forget_next()  # a pass may wait before it plans
        before, self._before = self._before, None
        if before is None:
            return
        by_counts = report.reason in (Reason.WEIGHTS, Reason.TRIAL)
        if by_counts and report.result is Result.INSTALLED:
            self.levels.used(time.monotonic())
        else:
            self.levels.use(before)


def weighed(mix: JobMix, old: Mapping[str, int], new: Mapping[str, int]) -> JobMix:
    """The mix with weights of the levels `new`; `old` are those that it has."""
    weights = dict.fromkeys(old, 1.0) | weights_of(new)
    return JobMix.of(replace(job, weight=weights.get(job.id, job.weight)) for job in mix.jobs)
