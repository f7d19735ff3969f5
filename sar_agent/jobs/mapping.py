"""Maps jobs from host names to terminals: records of a source become a mix on a fabric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sar_agent.fabric import Fabric
from sar_agent.jobs.model import JobMix, make_job, multi_switch_mix
from sar_agent.jobs.record import JobRecord


@dataclass(frozen=True)
class MappedJobs:
    """A mix, and the hosts without a terminal in the fabric, which are left out of their jobs."""

    mix: JobMix
    unknown_hosts: frozenset[str]


def mix_of_host_sets(fabric: Fabric, jobs: Iterable[frozenset[str]]) -> JobMix:
    """The mix of jobs of which only the hosts are known; their ids are numbers."""
    terminals = [[t for host in hosts for t in fabric.hosts.get(host, ())] for hosts in jobs]
    return multi_switch_mix(fabric, (make_job(str(i), t) for i, t in enumerate(terminals)))


def mix_of_records(
    fabric: Fabric, records: Iterable[JobRecord], counted: Mapping[str, float] | None = None
) -> MappedJobs:
    """The multi-switch jobs, with all terminals (every rail) of each job's hosts. `counted` are
    weights by job, for jobs whose users have said none."""
    unknown: set[str] = set()
    jobs = []
    for record in records:
        unknown.update(host for host in record.hosts if host not in fabric.hosts)
        known = [t for host in record.hosts for t in fabric.hosts.get(host, ())]
        said = (record.traffic or "").startswith("weight=")
        weight = record.weight if said else (counted or {}).get(record.id, record.weight)
        jobs.append(make_job(record.id, known, record.traffic, weight))
    return MappedJobs(multi_switch_mix(fabric, jobs), frozenset(unknown))
