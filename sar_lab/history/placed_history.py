"""A job history mapped to a fabric: the terminals of each job, and the job mix at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.model import make_job
from sar_lab.history.job_history import EXAMPLES, F64, I64, JobHistory, LeftOut


@dataclass(frozen=True, eq=False)
class PlacedHistory:
    """`parts[j]`: what of job j of the history spans two leaf switches, its rails or itself
    (`demand/endpoints.py`)."""

    history: JobHistory
    fabric: Fabric
    parts: tuple[tuple[Job, ...], ...]
    left_out: tuple[LeftOut, ...]
    """Hosts and jobs that are not in the fabric; `history.left_out` is separate."""

    def mix_at(self, time: float) -> JobMix:
        """The multi-switch jobs that run at that time."""
        return self.mix_of(self.history.running(time))

    def mix_of(self, running: I64) -> JobMix:
        """The multi-switch ones of these jobs (int64[·], indices into the history)."""
        return JobMix.of(part for j in running.tolist() for part in self.parts[j])

    @cached_property
    def change_times(self) -> F64:
        """float64[·], ascending: when a multi-switch job starts or ends."""
        wide = np.array([len(parts) > 0 for parts in self.parts], np.bool_)
        ends = self.history.end[wide]
        return np.union1d(self.history.start[wide], ends[np.isfinite(ends)])


def place_history(history: JobHistory, fabric: Fabric) -> PlacedHistory:
    """Maps each job to those terminals of its hosts that jobs use. Hosts that are not in the
    fabric, and jobs without any host in it, are left out and counted."""
    terminals = [np.array(fabric.job_ports.get(h, ()), np.int32) for h in history.hosts]
    known = np.array([len(t) > 0 for t in terminals], np.bool_)
    made: dict[bytes, tuple[Job, ...]] = {}
    jobs: list[tuple[Job, ...]] = []
    lost: list[str] = []
    for j, id in enumerate(history.ids):
        hosts = history.hosts_of(j)
        here = hosts[known[hosts]]
        if not len(here):
            lost.append(id)
        key = here.tobytes()
        if key not in made:
            of = [t for h in here.tolist() for t in terminals[h].tolist()]
            made[key] = multi_switch_mix(fabric, [make_job(id, of)]).jobs
        jobs.append(_named(id, made[key]))
    left = []
    unknown = [h for h, is_known in zip(history.hosts, known.tolist(), strict=True) if not is_known]
    if unknown:
        what = "hosts of jobs that are not in the fabric"
        left.append(LeftOut(what, len(unknown), tuple(sorted(unknown)[:EXAMPLES])))
    if lost:
        what = "jobs of which no host is in the fabric"
        left.append(LeftOut(what, len(lost), tuple(lost[:EXAMPLES])))
    return PlacedHistory(history, fabric, tuple(jobs), tuple(left))


def _named(id: str, parts: tuple[Job, ...]) -> tuple[Job, ...]:
    """The same parts of a job of that id."""
    whole = Job(id, parts[0].part_of.terminals) if parts and parts[0].part_of else None
    return tuple(Job(id, part.terminals, rail=part.rail, part_of=whole) for part in parts)
