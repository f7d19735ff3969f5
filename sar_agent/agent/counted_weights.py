"""`[counters] weights = "use"`: routes for what jobs really send, in place of full speed for all.

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
from sar_agent.agent.decide import Reason
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.planner import Planner
from sar_agent.config.counters import CountersConfig
from sar_agent.counters.weight_levels import WeightLevels, weights_of
from sar_agent.errors import SarError
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
    ) -> None:
        self.settings, self.levels = settings, levels
        self.counted, self.planner = counted, planner
        self._before: dict[str, int] | None = None
        """The levels that are used again if the reroute under way does not come into force."""

    def observe(self, site: Observation, measures: Measures | None) -> None:
        """Compares the newest window, see `CountedTraffic.observe`."""
        self.counted.observe(site, measures)

    def due(self, site: Observation) -> str:
        """Why to reroute for other weights; from then on they are used. Empty where not to."""
        if self.settings.weights != "use" or site.in_force is None:
            return ""
        levels, now = self.levels, time.monotonic()
        given = {record.id for record in site.records if record.says_weight}
        jobs = [job.id for job in site.mix.jobs if job.id not in given]
        proposed = levels.propose(self.counted.weights.weights, jobs)
        if proposed == levels.levels or not levels.due(now):
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
        self._before = levels.levels
        levels.use(proposed)
        return f"{what}; the largest load they give, {present:.2f}, can be {plan.load_max:.2f}"

    def ended(self, report: Report) -> None:
        """The pass has ended: without other routes, the old weights are used again."""
        before, self._before = self._before, None
        if before is None:
            return
        if report.reason is Reason.WEIGHTS and report.result is Result.INSTALLED:
            self.levels.used(time.monotonic())
        else:
            self.levels.use(before)


def weighed(mix: JobMix, old: Mapping[str, int], new: Mapping[str, int]) -> JobMix:
    """The mix with weights of the levels `new`; `old` are those that it has."""
    weights = dict.fromkeys(old, 1.0) | weights_of(new)
    return JobMix.of(replace(job, weight=weights.get(job.id, job.weight)) for job in mix.jobs)
