"""The simulated time of each job, beside the time that its link loads predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_links import F64
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import job_ends
from sar_lab.fluid.job_patterns import Pattern


@dataclass(frozen=True)
class JobTimes:
    """The times of the J whole jobs of the mix, in their order, for one set of routes and one
    pattern: a job is done when all of its rails are."""

    mix: JobMix
    time: F64
    """float64[J], multiples of the time without contention."""
    predicted: F64
    """float64[J]: 1 / throughput, the worst load on the job's channels, at least 1."""

    def summary(self) -> dict[str, float]:
        """Mean, median and worst over the jobs."""
        return {
            f"{name}_{which}": float(of(values))
            for name, values in (("time", self.time), ("predicted", self.predicted))
            for which, of in (("mean", np.mean), ("median", np.median), ("worst", np.max))
        }

    def json(self) -> dict[str, Any]:
        """The summary, and the times of each job."""
        sizes = np.bincount(self.mix.whole_of, np.diff(self.mix.offset)).astype(int).tolist()
        rows = zip(self.mix.whole_jobs, sizes, self.time, self.predicted, strict=True)
        detail = [
            {"job": job.id, "terminals": size, "time": float(time), "predicted": float(predicted)}
            for job, size, time, predicted in rows
        ]
        return {**self.summary(), "jobs_detail": detail}


def job_times(
    fabric: Fabric, mix: JobMix, routes: Routes, pattern: Pattern, stop_at: float = np.inf
) -> JobTimes:
    """All jobs start at once. Weights of jobs are ignored: every terminal sends at full speed.
    Raises `CheckFailed` where a route does not reach its destination, and `TooLong` where the
    clock passes `stop_at`."""
    alike = JobMix(tuple(replace(job, weight=1.0) for job in mix.jobs))
    flows = pattern(fabric, alike)
    end = end_times(routed_links(fabric, routes, flows), flows, stop_at)
    time = mix.largest(job_ends(flows, end, len(mix.jobs)))
    load = mix.largest(traffic_of(fabric, alike, routes).job_load)
    return JobTimes(mix, time, np.maximum(1.0, load))
