"""The assessment along a history, at evenly spaced moments, as in Fig. 7 of sar-2016.

The routes in force stay the same; the job-aware engine computes its routes again for each moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.quality.measures import mean_over_jobs
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.assess.host_ports import port_load
from sar_lab.assess.rate import Ratings
from sar_lab.history import PlacedHistory

SAMPLES = 48


@dataclass(frozen=True)
class MomentRating:
    """One set of routes at one moment: the four measures of the figure, and the time."""

    efi_max: int
    job_efi_mean: float
    """Mean over jobs of the largest effective EFI on their links."""
    dark_fiber: float
    links_mean: float
    """Mean over jobs of the number of links that they use."""
    time: float
    """Time to send all messages at once, from the fullest links: mean over jobs; 1.0: no
    waiting."""
    phase_time: float
    """The same with one message at a time, from phase contention."""


@dataclass(frozen=True)
class RatingsOverTime:
    """The ratings of M moments of a history, before and after."""

    times: tuple[float, ...]
    days: tuple[str, str]
    """Day and time of the first and the last, by the clock of `JobHistory.clock`."""
    jobs: tuple[int, ...]
    """The number of multi-switch jobs at each moment."""
    before: tuple[MomentRating, ...]
    after: tuple[MomentRating, ...]
    before_name: str
    after_name: str
    idle: int
    """The number of sampled moments without a multi-switch job; they are not part of the rest."""

    @property
    def saved(self) -> float:
        """The share of the time to send all messages at once that is saved over all moments."""
        before, after = (sum(p.time for p in points) for points in (self.before, self.after))
        return max(0.0, 1.0 - after / before) if before else 0.0

    @property
    def phases_saved(self) -> float:
        """The same with one message at a time; below 0 where it takes longer."""
        before, after = (sum(p.phase_time for p in side) for side in (self.before, self.after))
        return 1.0 - after / before if before else 0.0

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "saved": self.saved, "phases_saved": self.phases_saved}


def rate_over_time(
    placed: PlacedHistory,
    ratings: Ratings,
    samples: int = SAMPLES,
    say: Callable[[str], None] = lambda _: None,
) -> RatingsOverTime | None:
    """None where no job-aware engine serves the fabric, or no sampled moment has jobs."""
    if ratings.after is None:
        return None
    fabric, engine = placed.fabric, load_engine(ratings.after.name)
    first, last = placed.history.bulk
    known: dict[frozenset[bytes], tuple[MomentRating, MomentRating]] = {}
    times, jobs, pairs, idle = [], [], [], 0
    for i, time in enumerate(first + (np.arange(samples) + 0.5) / samples * (last - first)):
        mix = placed.mix_at(float(time))
        if not mix.jobs:
            idle += 1
            continue
        if mix.key not in known:
            say(f"moment {i + 1} of {samples}")
            traffic = traffic_of(fabric, mix, ratings.before.routes)
            aware = traffic_of(fabric, mix, routed(engine, fabric, mix, Options()))
            known[mix.key] = _point(traffic), _point(aware)
        times.append(float(time))
        jobs.append(len(mix.whole_jobs))
        pairs.append(known[mix.key])
    if not pairs:
        return None
    before, after = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    names = ratings.before.name, ratings.after.name
    days = placed.history.day_of(times[0]), placed.history.day_of(times[-1])
    return RatingsOverTime(tuple(times), days, tuple(jobs), before, after, *names, idle)


def _point(traffic: Traffic) -> MomentRating:
    live = traffic.fabric.channel_up
    mix = traffic.mix
    ports = port_load(traffic.fabric, mix)
    fullest = mix.largest(np.maximum(traffic.job_load, ports))
    phases = mix.largest(np.maximum(traffic.phase_contention, ports))
    return MomentRating(
        int(traffic.efi[live].max(initial=0)),
        float(traffic.job_efi.mean()),
        float((traffic.efi[live] == 0).mean()) if live.any() else 0.0,
        float(traffic.job_links.mean()),
        mean_over_jobs(np.maximum(1.0, fullest)),
        mean_over_jobs(phases),
    )
