"""Maps jobs from host names to terminals: records of a source become a mix on a fabric."""

from __future__ import annotations

from collections.abc import Iterable
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
    ports, sets = fabric.job_ports, list(jobs)
    unknown = ports.without(sets)
    terminals = [[t for host in hosts - unknown for t in ports[host]] for hosts in sets]
    return multi_switch_mix(fabric, (make_job(str(i), t) for i, t in enumerate(terminals)))


def mix_of_records(fabric: Fabric, records: Iterable[JobRecord]) -> MappedJobs:
    """The multi-switch jobs, with the terminals of each job's hosts that jobs use: every rail,
    or those that `fabric.job_hcas` names."""
    records, ports = tuple(records), fabric.job_ports
    unknown = ports.without(record.hosts for record in records)
    jobs = []
    for record in records:
        known = [t for host in record.hosts if host not in unknown for t in ports[host]]
        jobs.append(make_job(record.id, known, record.traffic, record.weight))
    return MappedJobs(multi_switch_mix(fabric, jobs), unknown)
