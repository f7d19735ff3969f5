"""Measures of routes under a job mix, for reports, JSON and Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.bounds import Bounds, bounds_of
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.quality.contention_bounds import ContentionBounds, contention_bounds
from sar_agent.quality.dark_fiber import least_dark_fiber
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class JobMeasure:
    """The measures of one multi-switch job: of all its rails, where it is planned for by rails."""

    job: str
    terminals: int
    switches: int
    """The number of leaf switches of its terminals."""
    efi_max: int
    """The largest effective EFI among the channels of its routes."""
    efi_own_max: int
    """gamma_max(j) of sar-2016: the most routes of its own on a channel."""
    links: int
    """The number of channels between switches of its routes."""
    throughput: float
    """1 / max(1, worst load on its paths): its share of full speed while every job does
    all-to-all at once."""


def mean_over_jobs(times: Sequence[float] | NDArray[np.float64]) -> float:
    """The mean of the times of multi-switch jobs, in multiples of each one's time alone; 1.0
    without any. A job counts once, whatever its hosts: so the engines decide, so the metrics say
    it, and so `assess` promises."""
    return float(np.mean(times)) if len(times) else 1.0


class CollectiveMeasure(NamedTuple):
    """A collective that all multi-switch jobs run at the same time."""

    mean: float
    """How many times as long as without contention, mean over the jobs; 1.0 without any."""
    worst: float
    meet: int
    """The number of jobs whose messages meet others on a link, so that they take longer."""

    @classmethod
    def of(cls, contention: NDArray[np.float64]) -> CollectiveMeasure:
        """From that of each job."""
        if not len(contention):
            return cls(1.0, 1.0, 0)
        slow = np.count_nonzero(contention > MEETS)
        return cls(mean_over_jobs(contention), float(contention.max()), int(slow))


MEETS = 1.0 + 1e-6
"""From this contention on, messages of a job meet others."""


@dataclass(frozen=True)
class Measures:
    """The contract of `sar-agent measure --json`, plus the per-channel arrays for pictures."""

    switches: int
    terminals: int
    channels: int
    """The number of live directed channels between switches (the paper's C*)."""
    jobs: int
    parts: int
    """The parts of these jobs that send among themselves: rails, or the jobs."""
    dark_fiber_ratio: float
    """The share of `channels` that no route of a job uses (sar-2016, Definition 8)."""
    effective_efi_max: int
    effective_efi_mean: float
    """The mean over all live channels, including unused ones."""
    lower_bound_efi_max: int
    load_max: float
    lower_bound_load_max: float
    lower_bounds: Bounds
    """All bounds by name; `lower_bound_efi_max` and `lower_bound_load_max` are the best."""
    throughput_mean: float
    """The mean over multi-switch jobs; 1.0 without any."""
    throughput_min: float
    jobs_detail: tuple[JobMeasure, ...]
    virtual_lanes: int
    channel_efi: NDArray[np.int64]
    """int64[C], all channels."""
    channel_load: NDArray[np.float64]
    """float64[C]."""
    traffic: Traffic
    """What was measured."""

    @cached_property
    def least_dark_fiber(self) -> float:
        """The lower bound of `dark_fiber_ratio` for minimal-hop routing: computed when first asked
        for, which no pass does."""
        return least_dark_fiber(self.traffic.fabric, self.traffic.mix)

    @property
    def collective_times(self) -> NDArray[np.float64]:
        """float64[P]: the mean over jobs of the contention in each of `COLLECTIVES`, by which the
        agent decides (`routing/collectives/objective.py`)."""
        return np.array([found.mean for found in self.collectives.values()])

    @property
    def load_time_mean(self) -> float:
        """The mean over multi-switch jobs of 1 / throughput; 1.0 without any."""
        return mean_over_jobs([1 / job.throughput for job in self.jobs_detail])

    @cached_property
    def phase_contention(self) -> NDArray[np.float64]:
        """float64[·], of each of `jobs_detail`."""
        return self.traffic.mix.largest(self.traffic.phase_contention)

    @cached_property
    def contention(self) -> dict[str, NDArray[np.float64]]:
        """By collective, a key of `COLLECTIVES`: float64[·], of each of `jobs_detail`."""
        return {
            word: self.traffic.mix.largest(self.traffic.contention(word)) for word in COLLECTIVES
        }

    @cached_property
    def collectives(self) -> dict[str, CollectiveMeasure]:
        """By collective: over all multi-switch jobs."""
        return {word: CollectiveMeasure.of(each) for word, each in self.contention.items()}

    @property
    def phase_contention_mean(self) -> float:
        """The mean over multi-switch jobs; 1.0 without any."""
        return mean_over_jobs(self.phase_contention)

    @property
    def phase_contention_max(self) -> float:
        return float(self.phase_contention.max(initial=1.0))

    @cached_property
    def contention_bounds(self) -> dict[str, ContentionBounds]:
        """By collective, but for all messages at once: of `jobs_detail` and of the slowest of them,
        by whatever tables. Computed when first asked for, which no pass does."""
        fabric, mix = self.traffic.fabric, self.traffic.mix
        found = {
            word: contention_bounds(fabric, mix, word) for word in COLLECTIVES if word != AT_ONCE
        }
        return {word: each._replace(each=mix.largest(each.each)) for word, each in found.items()}

    def json(self) -> dict[str, Any]:
        """All fields but the arrays, for `json.dumps`."""
        fields = {**vars(self), "lower_bounds": vars(self.lower_bounds)}  # `asdict` copies arrays
        computed = ("phase_contention", "contention", "contention_bounds")
        for arrays in ("channel_efi", "channel_load", "traffic", *computed):
            fields.pop(arrays, None)
        fields["least_dark_fiber"] = self.least_dark_fiber
        fields["phase_contention_mean"] = self.phase_contention_mean
        fields["phase_contention_max"] = self.phase_contention_max
        bounds = self.contention_bounds
        fields["jobs_detail"] = [
            vars(job)
            | {
                "phase_contention": float(self.phase_contention[j]),
                "contention": {word: float(each[j]) for word, each in self.contention.items()},
                "contention_bound": {word: float(each.each[j]) for word, each in bounds.items()},
            }
            for j, job in enumerate(self.jobs_detail)
        ]
        fields["collectives"] = {
            word: each._asdict() | self._bound(word) for word, each in self.collectives.items()
        }
        return fields

    def _bound(self, collective: str) -> dict[str, float]:
        """The mean over jobs of what the cabling forces, and of the slowest."""
        if collective == AT_ONCE:
            return {}
        each, worst = self.contention_bounds[collective]
        return {"bound": float(each.mean()) if len(each) else 1.0, "bound_worst": worst}


def measure(
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    *,
    traffic: Traffic | None = None,
    bounds: Bounds | None = None,
    price_rounds: int = 0,
    price_seconds: float = inf,
) -> Measures:
    """The measures of routes that passed the check. Terminals on one leaf cross no channel.

    `traffic` and `bounds` may be given where the caller has computed them for this fabric and mix.
    The bounds are those from cuts; `price_rounds` adds the slower one (`quality/prices.py`).
    """
    traffic = traffic or traffic_of(fabric, mix, routes)
    live = fabric.channel_up
    efi = traffic.efi[live]
    throughput = 1.0 / np.maximum(1.0, mix.largest(traffic.job_load))
    efi_of = mix.largest(traffic.job_efi)
    sizes, own_of, links_of, leaves_of = _of_whole_jobs(traffic)
    bounds = bounds or bounds_of(fabric, mix, rounds=price_rounds, seconds=price_seconds)
    detail = tuple(
        JobMeasure(
            job=job.id,
            terminals=int(size),
            switches=int(leaves_of[j]),
            efi_max=int(efi_of[j]),
            efi_own_max=int(own_of[j]),
            links=int(links_of[j]),
            throughput=float(throughput[j]),
        )
        for j, (job, size) in enumerate(zip(mix.whole_jobs, sizes, strict=True))
    )
    return Measures(
        switches=fabric.switches,
        terminals=fabric.terminals,
        channels=int(live.sum()),
        jobs=len(mix.whole_jobs),
        parts=len(mix.jobs),
        dark_fiber_ratio=float((efi == 0).mean()) if len(efi) else 0.0,
        effective_efi_max=int(efi.max(initial=0)),
        effective_efi_mean=float(efi.mean()) if len(efi) else 0.0,
        lower_bound_efi_max=bounds.efi_max,
        load_max=float(traffic.load[live].max(initial=0.0)),
        lower_bound_load_max=bounds.load_max,
        lower_bounds=bounds,
        throughput_mean=float(throughput.mean()) if len(detail) else 1.0,
        throughput_min=float(throughput.min()) if len(detail) else 1.0,
        jobs_detail=detail,
        virtual_lanes=routes.virtual_lanes,
        channel_efi=traffic.efi,
        channel_load=traffic.load,
        traffic=traffic,
    )


def _of_whole_jobs(traffic: Traffic) -> tuple[NDArray[np.int64], ...]:
    """Of each whole job: terminals, most routes of its own on a channel, channels, leaf switches,
    int64[·] each."""
    mix, fabric, every = traffic.mix, traffic.fabric, traffic.every
    sizes = np.diff(mix.offset).astype(np.int64)
    if len(mix.whole_jobs) == len(mix.jobs):
        return sizes, traffic.job_efi_own, traffic.job_links, traffic.job_switches
    rows: list[list[int]] = [[] for _ in mix.whole_jobs]
    for j, of in enumerate(mix.whole_of.tolist()):
        rows[of].append(j)
    found = []
    for parts in rows:
        places = np.concatenate([np.arange(*every.offset[j : j + 2]) for j in parts])
        own = np.bincount(every.channel[places], every.routes[places], 1)
        leaves = fabric.terminal_switch[np.concatenate([mix.jobs[j].terminals for j in parts])]
        found.append((sizes[parts].sum(), own.max(), np.count_nonzero(own), len({*leaves})))
    return tuple(np.array(found).astype(np.int64).T)
