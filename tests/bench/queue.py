"""Jobs that start and end at random, while the fabric stays about equally busy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric, Kind
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job
from sar_agent.jobs.synthetic import synthetic_jobs

FREE = 0.15
LARGEST = 64


class Queue:
    """The running `jobs`, at first those of `mix:1`."""

    def __init__(self, fabric: Fabric, seed: int) -> None:
        self.fabric, self.jobs = fabric, list(synthetic_jobs(fabric, 1))
        self._random = np.random.default_rng(seed)
        self._started = 0
        usable = fabric.terminal_up & (fabric.terminal_kind == Kind.COMPUTE)
        self._hosts = [list(ts) for ts in fabric.hosts.values() if usable[list(ts)].all()]

    @property
    def mix(self) -> JobMix:
        """The multi-switch jobs."""
        return multi_switch_mix(self.fabric, self.jobs)

    def changes(self) -> Iterator[JobMix]:
        """The mix after each start or end of a multi-switch job."""
        before = self.mix
        while True:
            if len(self._free()) > FREE * len(self._hosts):
                size = int(np.exp(self._random.uniform(np.log(2), np.log(LARGEST + 1))))
                self._start(size)
            else:
                self._end()
            if self.mix != before:
                before = self.mix
                yield before

    def replace_one(self) -> JobMix:
        """The mix after a job has ended and one of the same size has started on other hosts."""
        job = self._end()
        hosts = sum(not set(host).isdisjoint(job.terminals.tolist()) for host in self._hosts)
        self._start(hosts, avoid=job)
        return self.mix

    def _start(self, size: int, avoid: Job | None = None) -> None:
        free = self._free(*([avoid] if avoid else []))
        chosen = self._random.permutation(len(free))[:size]
        self._started += 1
        job = make_job(f"new-{self._started}", [t for i in chosen for t in free[i]])
        self.jobs.append(job)

    def _end(self) -> Job:
        return self.jobs.pop(int(self._random.integers(len(self.jobs))))

    def _free(self, *others: Job) -> list[list[int]]:
        busy = {int(t) for job in (*self.jobs, *others) for t in job.terminals}
        return [host for host in self._hosts if busy.isdisjoint(host)]
