"""The same question along a history, at evenly spaced moments, as Fig. 7 of sar-2016 does.

Routes in force stay as they are; routes that know the jobs are computed anew for each moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.assess.host_ports import port_load
from sar_lab.assess.rate import Ratings
from sar_lab.history import PlacedHistory

SAMPLES = 48


@dataclass(frozen=True)
class MomentRating:
    """One set of routes at one moment; the four measures of the figure, and time."""

    efi_max: int
    job_efi_mean: float
    """Mean over jobs of the largest effective EFI on their links."""
    dark_fiber: float
    links_mean: float
    """Mean over jobs of the links that they use."""
    time: float
    """As fullest links say it, mean over jobs weighted with terminals; 1.0: nobody waits."""


@dataclass(frozen=True)
class RatingsOverTime:
    """M moments."""

    times: tuple[float, ...]
    jobs: tuple[int, ...]
    """Multi-switch jobs at each."""
    before: tuple[MomentRating, ...]
    after: tuple[MomentRating, ...]
    before_name: str
    after_name: str
    idle: int
    """Moments left out of the rest as no multi-switch job ran."""

    @property
    def saved(self) -> float:
        """Share of time saved, over all moments."""
        before, after = (sum(p.time for p in points) for points in (self.before, self.after))
        return max(0.0, 1.0 - after / before) if before else 0.0

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "saved": self.saved}


def rate_over_time(
    placed: PlacedHistory,
    ratings: Ratings,
    samples: int = SAMPLES,
    say: Callable[[str], None] = lambda _: None,
) -> RatingsOverTime | None:
    """None where no engine that knows the jobs serves, or no sampled moment has jobs."""
    if ratings.after is None or samples < 1:
        return None
    fabric, engine = placed.fabric, load_engine(ratings.after.name)
    first, last = placed.history.span
    known: dict[frozenset[bytes], tuple[MomentRating, MomentRating]] = {}
    times, jobs, pairs, idle = [], [], [], 0
    traffic: Traffic | None = None
    for i, time in enumerate(first + (np.arange(samples) + 0.5) / samples * (last - first)):
        mix = placed.mix_at(float(time))
        if not mix.jobs:
            idle += 1
            continue
        if mix.key not in known:
            say(f"moment {i + 1} of {samples}")
            traffic = traffic_of(fabric, mix, ratings.before.routes, traffic)
            aware = traffic_of(fabric, mix, routed(engine, fabric, mix, Options()))
            known[mix.key] = _point(traffic), _point(aware)
        times.append(float(time))
        jobs.append(len(mix.jobs))
        pairs.append(known[mix.key])
    if not pairs:
        return None
    before, after = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    names = ratings.before.name, ratings.after.name
    return RatingsOverTime(tuple(times), tuple(jobs), before, after, *names, idle)


def _point(traffic: Traffic) -> MomentRating:
    live = traffic.fabric.channel_up
    size = np.diff(traffic.mix.offset)
    fullest = np.maximum(traffic.job_load, port_load(traffic.fabric, traffic.mix))
    return MomentRating(
        int(traffic.efi[live].max(initial=0)),
        float(traffic.job_efi.mean()),
        float((traffic.efi[live] == 0).mean()) if live.any() else 0.0,
        float(traffic.job_links.mean()),
        float(np.average(np.maximum(1.0, fullest), weights=size)),
    )
