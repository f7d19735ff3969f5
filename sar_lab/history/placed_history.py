"""A job history mapped to a fabric: the terminals of each job, and the job mix at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sar_agent.demand.rails import Rails
from sar_agent.fabric import Fabric
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.model import make_job, multi_switch_mix
from sar_lab.history.job_history import EXAMPLES, F64, I64, JobHistory, LeftOut


@dataclass(frozen=True, eq=False)
class PlacedHistory:
    """`jobs[j]` is job j of the history where it spans two leaf switches, else None."""

    history: JobHistory
    fabric: Fabric
    jobs: tuple[Job | None, ...]
    left_out: tuple[LeftOut, ...]
    """Hosts and jobs that are not in the fabric; `history.left_out` is separate."""
    rails: Rails | None = None
    """Where each rail of a job counts as a job of its own in mixes."""

    def mix_at(self, time: float) -> JobMix:
        """The multi-switch jobs that run at that time."""
        return self.mix_of(self.history.running(time))

    def mix_of(self, running: I64) -> JobMix:
        """The multi-switch ones of these jobs (int64[·], indices into the history)."""
        mix = JobMix.of(job for j in running.tolist() if (job := self.jobs[j]) is not None)
        return self.rails.split(mix) if self.rails else mix

    @cached_property
    def change_times(self) -> F64:
        """float64[·], ascending: when a multi-switch job starts or ends."""
        wide = np.array([job is not None for job in self.jobs], np.bool_)
        ends = self.history.end[wide]
        return np.union1d(self.history.start[wide], ends[np.isfinite(ends)])


def place_history(history: JobHistory, fabric: Fabric) -> PlacedHistory:
    """Maps each job to those terminals of its hosts that jobs use. Hosts that are not in the
    fabric, and jobs without any host in it, are left out and counted."""
    terminals = [np.array(fabric.job_ports.get(h, ()), np.int32) for h in history.hosts]
    known = np.array([len(t) > 0 for t in terminals], np.bool_)
    made: dict[bytes, Job | None] = {}
    jobs: list[Job | None] = []
    lost: list[str] = []
    for j, id in enumerate(history.ids):
        hosts = history.hosts_of(j)
        here = hosts[known[hosts]]
        if not len(here):
            lost.append(id)
        key = here.tobytes()
        if key not in made:
            of = [t for h in here.tolist() for t in terminals[h].tolist()]
            made[key] = next(iter(multi_switch_mix(fabric, [make_job(id, of)]).jobs), None)
        job = made[key]
        jobs.append(job and Job(id, job.terminals))
    left = []
    unknown = [h for h, is_known in zip(history.hosts, known.tolist(), strict=True) if not is_known]
    if unknown:
        what = "hosts of jobs that are not in the fabric"
        left.append(LeftOut(what, len(unknown), tuple(sorted(unknown)[:EXAMPLES])))
    if lost:
        what = "jobs of which no host is in the fabric"
        left.append(LeftOut(what, len(lost), tuple(lost[:EXAMPLES])))
    return PlacedHistory(history, fabric, tuple(jobs), tuple(left))
