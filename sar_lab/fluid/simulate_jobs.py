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
    """The times of J jobs, in the order of the mix, for one set of routes and one pattern."""

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
        both = zip(self.mix.jobs, self.time, self.predicted, strict=True)
        detail = [
            {"job": j.id, "terminals": len(j.terminals), "time": float(t), "predicted": float(p)}
            for j, t, p in both
        ]
        return {**self.summary(), "jobs_detail": detail}


def job_times(fabric: Fabric, mix: JobMix, routes: Routes, pattern: Pattern) -> JobTimes:
    """All jobs start at once. Weights of jobs are ignored: every terminal sends at full speed.
    Raises `CheckFailed` where a route does not reach its destination."""
    mix = JobMix(tuple(replace(job, weight=1.0) for job in mix.jobs))
    flows = pattern(fabric, mix)
    end = end_times(routed_links(fabric, routes, flows), flows)
    time = job_ends(flows, end, len(mix.jobs))
    return JobTimes(mix, time, np.maximum(1.0, traffic_of(fabric, mix, routes).job_load))
