"""Arrivals, sizes and run times after U. Lublin and D. G. Feitelson, *The workload on parallel
supercomputers: modeling the characteristics of rigid jobs*, J. Parallel Distrib. Comput. 63 (2003).

The parameters are those of the authors for jobs of all types. A machine sets its size, which the
model leaves open, and three factors and limits by which a mix is fitted to the properties of a
site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, lgamma, log, log2

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

F64 = NDArray[np.float64]
SLOT = 1800.0
"""Seconds; the daily cycle has 48 such slots."""
SLOTS = 48
CYCLE_STARTS_AT = 11
"""Slot of the day at which the gamma curve of the daily cycle begins."""
MOST_LOG_SECONDS = 12.0
"""Longest run time of the model: e**12 s, 45 h."""


@dataclass(frozen=True)
class Workload:
    """The model's parameters, in its names' order; times are in seconds, sizes in nodes."""

    largest: int
    """Nodes of the largest job."""
    serial: float = 0.244
    """Share of jobs on one node."""
    power_of_two: float = 0.576
    """Share of jobs on a power of two nodes, at least 2."""
    low: float = 0.8
    """Log2 of the smallest parallel job, less a little."""
    below_largest: float = 2.5
    """log2(largest) minus the log2 size at which the two-stage uniform distribution bends; the
    model requires 1.5 … 3.5."""
    in_low_stage: float = 0.86
    short: tuple[float, float] = (4.2, 0.94)
    """Shape and scale of log run times' first gamma distribution."""
    long: tuple[float, float] = (312.0, 0.03)
    """Shape and scale of the second gamma distribution."""
    short_share: tuple[float, float] = (-0.0054, 0.78)
    """Share of the first distribution: slope over nodes, and intercept."""
    gap: tuple[float, float] = (10.2303 * 1.0225, 0.4871)
    """Shape and scale of the log gap between two arrivals."""
    cycle: tuple[float, float] = (8.1737, 3.9631)
    """Shape and scale of the daily cycle, in slots."""
    gap_times: float = 1.0
    """Factor for the gaps between arrivals."""
    time_times: float = 1.0
    """Factor for run times."""
    longest: float = 7 * 86400.0
    """The time limit of jobs, in seconds; longer run times are drawn again."""
    longest_gap: float = 12 * 3600.0
    """The longest gap between arrivals, in seconds; longer ones are drawn again. The model's gaps
    have a heavy tail of up to five days; with a large factor a machine would get no jobs for
    weeks."""

    @cached_property
    def slot_weights(self) -> F64:
        """float64[48]: arrivals in each half hour of a day, on average 1."""
        shape, scale = self.cycle
        # Eight values of the gamma density in each slot approximate its integral closely enough.
        weight = np.zeros(SLOTS)
        for i in range(CYCLE_STARTS_AT, CYCLE_STARTS_AT + SLOTS):
            inside = 0.0
            for part in range(8):
                x = i - 0.5 + (part + 0.5) / 8
                inside += exp((shape - 1) * log(x) - x / scale - lgamma(shape)) / scale**shape / 8
            weight[(i - 1) % SLOTS] = inside
        return np.array(weight / weight.mean(), np.float64)


@dataclass(frozen=True, eq=False)
class SubmittedJobs:
    """J submitted jobs in the order of their arrival."""

    arrival: F64
    """float64[J], seconds from a midnight."""
    nodes: NDArray[np.int64]
    """int64[J]"""
    seconds: F64
    """float64[J], run time."""

    def only(self, which: NDArray[np.bool_]) -> SubmittedJobs:
        """The jobs where `which` (bool[J]) is true."""
        return SubmittedJobs(self.arrival[which], self.nodes[which], self.seconds[which])


def submit_jobs(workload: Workload, random: Generator, seconds: float) -> SubmittedJobs:
    """The jobs that arrive within `seconds`."""
    arrival = _arrivals(workload, random, seconds)
    nodes = np.array([_nodes(workload, random) for _ in arrival], np.int64)
    times = np.array([_seconds(workload, random, int(n)) for n in nodes], np.float64)
    return SubmittedJobs(np.array(arrival), nodes, times)


def _arrivals(workload: Workload, random: Generator, seconds: float) -> list[float]:
    """Arrival times. Gaps shrink in slots with a high weight, and grow in slots with a low one."""
    arrivals: list[float] = []
    now = 0.0
    while True:
        left = workload.longest_gap + 1
        while left > workload.longest_gap:
            left = np.exp(random.gamma(*workload.gap)) * workload.gap_times
        while now < seconds:
            weight = workload.slot_weights[int(now // SLOT) % SLOTS]
            until = (now // SLOT + 1) * SLOT
            if left <= (until - now) * weight:
                now += left / weight
                break
            left -= (until - now) * weight
            now = until
        if now >= seconds:
            return arrivals
        arrivals.append(now)


def _nodes(workload: Workload, random: Generator) -> int:
    kind = random.uniform()
    if kind <= workload.serial:
        return 1
    high = log2(workload.largest)
    middle = max(workload.low, high - workload.below_largest)
    low_stage = random.uniform() <= workload.in_low_stage
    bits = random.uniform(*((workload.low, middle) if low_stage else (middle, high)))
    if kind <= workload.serial + workload.power_of_two:
        bits = int(bits + 0.5)
    return int(min(2**bits + 0.5, workload.largest))


def _seconds(workload: Workload, random: Generator, nodes: int) -> float:
    slope, intercept = workload.short_share
    share = min(1.0, max(0.0, slope * nodes + intercept))
    while True:
        log_seconds = random.gamma(
            *(workload.short if random.uniform() <= share else workload.long)
        )
        if log_seconds <= MOST_LOG_SECONDS:
            seconds = float(np.exp(log_seconds)) * workload.time_times
            if seconds <= workload.longest:
                return seconds
