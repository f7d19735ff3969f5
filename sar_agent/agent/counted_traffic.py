"""What ports counted, beside what was predicted: after each pass, and once for a command.

Nothing here changes routes, and no failure of a counter fails a pass.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

from sar_agent.agent.observe_site import Observation
from sar_agent.config.model import Config
from sar_agent.counters import Comparison, CounterWindow, WindowLeftOut, align, compare
from sar_agent.counters.compare import job_shares
from sar_agent.counters.job_weights import JobWeights
from sar_agent.counters.predicted import PredictedLoads
from sar_agent.counters.sources import CounterSource, counter_source
from sar_agent.errors import InputError, SarError
from sar_agent.quality import Measures
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)


class CountedTraffic:
    """Compares each window once. Without a `source` it does nothing."""

    def __init__(
        self,
        config: Config,
        metrics: Metrics,
        problems: ProblemLog,
        unexpected: UnexpectedErrors,
        source: CounterSource | None = None,
    ) -> None:
        self.unexpected = unexpected
        self.settings, self.metrics, self.problems = config.counters, metrics, problems
        self.source = source or counter_source(config)
        self.loads = PredictedLoads()
        self.weights = JobWeights(self.settings.weights_smoothing_seconds)
        self.last: Comparison | None = None
        """The last window that could be used."""
        self.window: CounterWindow | None = None
        """The same window, on the channels of the fabric whose digest is `cables`."""
        self.cables = b""
        self.ended_at = 0.0
        """When it ended, Unix seconds."""
        self.span = (0.0, 0.0)
        """Its begin and end, by `time.monotonic`."""
        self.windows = 0
        """How many windows could be used."""
        self.problem = ""
        """Why the newest window could not be used; empty where it could, or is not complete."""
        self._identity = ""
        """The last window that was looked at."""
        self._traffic: Traffic | None = None
        self._hot: tuple[str, ...] = ()
        """The links that were last logged as hot but not predicted."""

    def observe(self, site: Observation, measures: Measures | None) -> None:
        """After a pass saw `site`, with the measures of the routes in force. Never raises: what is
        wrong with a window is logged once."""
        if self.source is not None:
            source = self.source
            self.unexpected.guard(
                "counters", lambda: self._observe(source, site, measures), None, part=True
            )

    def _observe(self, source: CounterSource, site: Observation, measures: Measures | None) -> None:
        now = time.monotonic()
        load = measures.channel_load if measures else None
        self.loads.add(now, site.fabric.digest, load)
        name = self.settings.source
        try:
            readings = source.read()
            if readings.identity == self._identity:
                return
            window = align(site.fabric, readings)
            comparison = self._compare(site, window, now)
            self._identity = readings.identity
        except SarError as error:
            self.problem = f"counters: {error}"
            self.problems.problem("counters", self.problem)
            self.metrics.show_left_out(name)
            return
        self.last, self.window, self.problem = comparison, window, ""
        self.cables, self.ended_at = site.fabric.digest, time.time() - window.ended
        self.span = now - window.ended - window.seconds, now - window.ended
        self.windows += 1
        self.metrics.show_comparison(name, comparison)
        self.problems.problem("counters", "", "counters can be used again")
        hot = tuple(sorted(link.link for link in comparison.hot))
        if hot != self._hot:  # a ProblemLog would take another link for the same problem
            if hot:
                log.warning("%s", hot_words(comparison))
            else:
                log.info("no link is hot without being predicted any more")
            self._hot = hot

    @property
    def why_not(self) -> str:
        """Why there is no window, where nothing is wrong."""
        if self.source is None:
            return "no counters are read: counters.source is off"
        return "the first window is not complete yet"

    def summary(self) -> dict[str, Any] | None:
        """The last window, for the history; None where none could be used."""
        if self.last is None:
            return None
        names = ("rank", "top", "counted_max", "hot_links")
        return {name: getattr(self.last, name) for name in names}

    def _compare(self, site: Observation, window: CounterWindow, now: float) -> Comparison:
        end = now - window.ended
        predicted = self.loads.over(end - window.seconds, end, site.fabric.digest)
        if site.in_force is not None:
            self._traffic = traffic_of(
                site.fabric, site.mix, site.in_force.routes, before=self._traffic
            )
        observing = self.settings.weights != "off"
        return compare(
            site.fabric,
            window,
            predicted,
            self._traffic if site.in_force is not None else None,
            hot_load=self.settings.hot_load,
            hot_factor=self.settings.hot_factor,
            weights=self.weights.measured(site.mix, window) if observing else None,
        )


@dataclass(frozen=True, eq=False)
class CountedNow:
    """The last window beside the present routes and jobs."""

    comparison: Comparison
    traffic: Traffic
    window: CounterWindow


def counted_now(
    config: Config, site: Observation, source: CounterSource | None = None
) -> CountedNow:
    """For one-shot commands: assume that the current jobs ran during the whole window. Raises
    `InputError` where no source is configured, `SarError` where there is no good window."""
    settings = config.counters
    source = source or counter_source(config)
    if source is None:
        raise InputError(
            "no counters are read",
            remedy='set counters.source = "plugin", "prometheus" or "files"',
        )
    if site.in_force is None:
        raise WindowLeftOut("the routes in force are not known, so no load is predicted")
    window = align(site.fabric, source.read())
    traffic = traffic_of(site.fabric, site.mix, site.in_force.routes)
    comparison = compare(
        site.fabric,
        window,
        traffic.load,
        traffic,
        hot_load=settings.hot_load,
        hot_factor=settings.hot_factor,
        weights=job_shares(site.mix, window) if settings.weights != "off" else None,
    )
    return CountedNow(comparison, traffic, window)


def hot_words(comparison: Comparison) -> str:
    """A sentence on links that are hot without a known reason; empty where there is none."""
    if not comparison.hot_links:
        return ""
    shown = "; ".join(
        f"{link.link} carried {link.counted:.0%} of its speed where the jobs explain "
        f"{link.explained:.0%}"
        for link in comparison.hot[:3]
    )
    more = comparison.hot_links - min(3, len(comparison.hot))
    return f"hot but not predicted: {shown}" + (f"; and {more} more" if more else "")


def comparison_words(comparison: Comparison) -> str:
    """A window for people."""

    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    lines = [
        f"{comparison.source}: a window of {comparison.seconds:.0f} s that ended "
        f"{comparison.age:.0f} s ago, {comparison.known} of {comparison.links} links",
        f"rank correlation of predicted load and counted bytes: {number(comparison.rank, '.3f')}",
        f"of the counted top 1 %, predicted in the top 5 %: {number(comparison.top, '.0%')}",
        f"counted: mean {comparison.counted_mean:.1%} of a link's speed, most "
        f"{comparison.counted_max:.1%}; links carried {comparison.scale:.1%} of the predicted load",
    ]
    lines += [f"left out: {note}" for note in comparison.notes]
    if comparison.hot_links:
        lines.append(f"hot but not predicted: {comparison.hot_links} links")
        lines += [
            f"  {link.link}: counted {link.counted:.1%}, explained by jobs {link.explained:.1%}"
            for link in comparison.hot
        ]
    else:
        lines.append("hot but not predicted: none")
    if comparison.jobs:
        lines.append(f"{'job':>12}  {'links':>6} {'predicted':>9} {'counted':>8} {'hottest':>8} "
                     f"{'waits':>6} {'weight':>7}  worst link")  # fmt: skip
    lines += [
        f"{job.job:>12}  {job.links:6} {job.predicted:9.2f} {number(job.counted, '.1%'):>8} "
        f"{number(job.hottest, '.1%'):>8} {number(job.waits_share, '.0%'):>6} "
        f"{number(job.weight, '.3f'):>7}  {job.worst_link}"
        for job in comparison.jobs
    ]
    return "\n".join(lines)
