"""Synthetic job mixes from a seed, for demonstrations and benchmarks.

A share of all hosts runs jobs of 2 to 64 hosts. Sizes are drawn log-uniformly (small jobs are
common, as in every published trace) and nodes at random, which is as fragmented as a machine that
has been running for weeks.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric, Kind
from sar_agent.jobs.model import Job, JobMix, make_job, multi_switch_mix


def synthetic_jobs(
    fabric: Fabric, seed: int, *, busy: float = 0.85, largest: int = 64
) -> tuple[Job, ...]:
    """Jobs `1`, `2`, … on `busy` of the compute hosts; the same for the same seed and fabric."""
    random = np.random.default_rng(seed)
    usable = fabric.terminal_up & (fabric.terminal_kind == Kind.COMPUTE)
    hosts = [h for h, terminals in fabric.job_ports.items() if usable[list(terminals)].all()]
    order = random.permutation(len(hosts))[: round(busy * len(hosts))]
    jobs: list[Job] = []
    start = 0
    while start + 2 <= len(order):
        size = int(np.exp(random.uniform(np.log(2), np.log(largest + 1))))
        terminals = [t for h in order[start : start + size] for t in fabric.job_ports[hosts[h]]]
        jobs.append(make_job(str(len(jobs) + 1), terminals))
        start += size
    return tuple(jobs)


def synthetic_mix(fabric: Fabric, seed: int) -> JobMix:
    """The multi-switch jobs of `synthetic_jobs`."""
    return multi_switch_mix(fabric, synthetic_jobs(fabric, seed))
