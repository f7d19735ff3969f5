"""The whole result of an assessment, for the page and for `assess.json`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sar_agent.counters import PortReadings
from sar_agent.reports.places import NOWHERE, Places
from sar_lab.assess.counted_links import CountedLinks, counted_links
from sar_lab.assess.judgement import Judgement, judge
from sar_lab.assess.limits import limits_of
from sar_lab.assess.over_time import SAMPLES, RatingsOverTime, rate_over_time
from sar_lab.assess.rate import ENGINES, Ratings, rate_all, simulate
from sar_lab.assess.repair_first import repair_first
from sar_lab.assess.site_data import SiteData
from sar_lab.assess.traffic_classes import TrafficClass, traffic_classes

SIMULATE_FOR = 45.0
"""Seconds for which an assessment simulates unless it is told to go on."""


@dataclass(frozen=True)
class JobGain:
    """One job and its times to send, before and after; 1.0: as fast as alone."""

    job: str
    terminals: int
    switches: int
    before: float
    """All messages at once."""
    after: float
    phases_before: float
    """One message at a time."""
    phases_after: float

    @property
    def saved(self) -> float:
        """The share of its time that the job saves with all messages at once; below 0 where it
        would get slower."""
        return 1.0 - self.after / self.before

    @property
    def phases_saved(self) -> float:
        """The same with one message at a time."""
        return 1.0 - self.phases_after / self.phases_before


@dataclass(frozen=True)
class Assessment:
    """Everything that the page and `assess.json` contain."""

    command: str
    given: SiteData
    ratings: Ratings
    judgement: Judgement
    course: RatingsOverTime | None
    limits: tuple[str, ...]
    classes: tuple[TrafficClass, ...]
    seconds: float
    repair: str = ""
    """What to repair first; empty if nothing is odd."""
    counted: CountedLinks | None = None
    """What links carried, where dumps of counters were given."""

    @property
    def gainers(self) -> tuple[JobGain, ...]:
        """Every multi-switch job; the one that gains the most host hours comes first."""
        before, after = self.ratings.before, self.ratings.after
        if after is None:
            return ()
        times = (before.times, after.times, before.phase_times, after.phase_times)
        rows = zip(before.measures.jobs_detail, *times, strict=True)
        gains = [JobGain(job.job, job.terminals, job.switches, *each) for job, *each in rows]
        return tuple(sorted(gains, key=lambda g: -g.terminals * (g.before - g.after)))

    def json(self) -> dict[str, Any]:
        given, ratings = self.given, self.ratings
        return {
            "command": self.command,
            "repair_first": self.repair,
            "verdict": self.judgement.json(),
            "adaptive": [each._asdict() for each in self.classes],
            "fabric": given.fabric.name,
            "moment": given.moment,
            "jobs": given.jobs,
            "multi_switch_jobs": len(given.mix.whole_jobs),
            "parts": len(given.mix.jobs),
            "before": ratings.before.json(),
            "before_assumed": ratings.assumed,
            "after": ratings.after and ratings.after.name,
            "engines": [rated.json() for rated in ratings.engines],
            "unserved": [{"engine": name, "why": why} for name, why in ratings.unserved],
            "gainers": [
                {**asdict(g), "saved": g.saved, "phases_saved": g.phases_saved}
                for g in self.gainers
            ],
            "history": self.course and self.course.json(),
            "topology": None if given.topology is None else list(given.topology),
            "left_out": [asdict(left) for left in given.left_out],
            "remarks": list(given.remarks),
            "counted": self.counted and self.counted.json(),
            "limits": list(self.limits),
            "seconds": self.seconds,
        }


def assess(
    given: SiteData,
    *,
    command: str = "",
    engines: Sequence[str] = ENGINES,
    adaptive: bool = False,
    samples: int = SAMPLES,
    simulate_for: float = SIMULATE_FOR,
    counters: PortReadings | None = None,
    ignored: Places = NOWHERE,
    say: Callable[[str], None] = lambda _: None,
    draft: Callable[[Assessment], None] = lambda _: None,
) -> Assessment:
    """`draft` gets the assessment as soon as all but the simulation is done: its times are upper
    bounds. `simulate_for`: the most seconds of the simulation; 0 for none. `ignored`: what need not
    be repaired.

    Raises `SarError` where no engine at all serves the fabric, or counters cannot be used."""
    began = time.perf_counter()
    ratings = rate_all(given.fabric, given.mix, given.today, engines, say=say)
    counted = None
    if counters is not None:
        counted = counted_links(given.fabric, given.mix, ratings.before, counters)
    repair = repair_first(given, ratings.before, ignored)
    classes = traffic_classes(given.fabric, adaptive)

    def assessed(ratings: Ratings, course: RatingsOverTime | None) -> Assessment:
        judgement = judge(given, ratings, adaptive, course)
        limits = limits_of(given, ratings, adaptive)
        seconds = time.perf_counter() - began
        return Assessment(
            command, given, ratings, judgement, course, limits, classes, seconds, repair, counted
        )

    if given.placed is None and simulate_for > 0:
        draft(assessed(ratings, None))
    course = rate_over_time(given.placed, ratings, samples, say) if given.placed else None
    if simulate_for > 0:
        stop_at = time.monotonic() + simulate_for
        ratings = simulate(given.fabric, given.mix, ratings, stop_at, say) or ratings
    return assessed(ratings, course)
