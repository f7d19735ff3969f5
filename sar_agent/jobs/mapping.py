"""From host names to terminals: jobs as Slurm tells them, as a mix on a fabric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sar_agent.fabric import Fabric
from sar_agent.jobs.model import JobMix, make_job, multi_switch_mix
from sar_agent.jobs.record import JobRecord


@dataclass(frozen=True)
class MappedJobs:
    """`unknown_hosts` are on no terminal of the fabric: left out, the rest of their job goes on."""

    mix: JobMix
    unknown_hosts: frozenset[str]


def mix_of_host_sets(fabric: Fabric, jobs: Iterable[frozenset[str]]) -> JobMix:
    """Jobs of which no more is known than their hosts; ids are made up."""
    terminals = [[t for host in hosts for t in fabric.hosts.get(host, ())] for hosts in jobs]
    return multi_switch_mix(fabric, (make_job(str(i), t) for i, t in enumerate(terminals)))


def mix_of_records(fabric: Fabric, records: Iterable[JobRecord]) -> MappedJobs:
    """All terminals (every rail) of each job's hosts; of these the multi-switch jobs."""
    unknown: set[str] = set()
    jobs = []
    for record in records:
        unknown.update(host for host in record.hosts if host not in fabric.hosts)
        known = [t for host in record.hosts for t in fabric.hosts.get(host, ())]
        jobs.append(make_job(record.id, known, record.traffic, record.weight))
    return MappedJobs(multi_switch_mix(fabric, jobs), frozenset(unknown))
