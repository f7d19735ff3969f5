"""Endpoints: which terminals of a job send to each other; the `JobMix` that all others are given.

A job uses the live ports of its hosts that are for jobs (`Fabric.job_ports`). Where the cabling is
rail-optimised (`rails.py`), each rail of a job sends among itself: it is a `Job` of its own, a
*part*, with the id of the job. Ranks, declared traffic, loads are those of parts; whoever names or
counts jobs takes `JobMix.whole_jobs`. A host with fewer ports than there are rails takes part in
those that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sar_agent.demand.rails import rails_of
from sar_agent.fabric import Fabric
from sar_agent.jobs.model import Job, JobMix, make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.synthetic import jobs_of_spec, synthetic_jobs


def multi_switch_mix(fabric: Fabric, jobs: Iterable[Job]) -> JobMix:
    """The jobs, or their parts, whose live terminals sit on at least two hosts and two leaf
    switches.

    A job on one host sends nothing into the fabric even where the host's rails end on several
    leaf switches; terminals whose link is down take no part. Parts stay what they are.
    """
    parts = (part for job in jobs for part in parts_of(fabric, job))
    return JobMix.of(kept for part in parts if (kept := live_part(fabric, part)))


def parts_of(fabric: Fabric, job: Job) -> tuple[Job, ...]:
    """The job's rails, or the job where each of its terminals sends to all others."""
    rails = None if job.part_of else rails_of(fabric)
    if rails is None:
        return (job,)
    rail = rails.rail[job.terminals]
    return tuple(
        Job(job.id, job.terminals[rail == r], job.traffic, job.weight, r, job)
        for r in np.unique(rail).tolist()
    )


def live_part(fabric: Fabric, job: Job) -> Job | None:
    """The job's live terminals; None where they are not on several hosts and leaf switches."""
    live = job.terminals[fabric.terminal_up[job.terminals]]
    leaf, host = fabric.terminal_switch[live], fabric.terminal_host
    # Nearly always the second terminal is on another host.
    if (leaf != leaf[:1]).any() and any(host[t] != host[live[0]] for t in live[1:].tolist()):
        if len(live) == len(job.terminals):
            return job
        return Job(job.id, live, job.traffic, job.weight, job.rail, job.part_of)
    return None


def rail_note(fabric: Fabric, mix: JobMix) -> str:
    """What a report says where the mix is of rails that the cabling shows; else empty."""
    rails = rails_of(fabric)
    hosts = {fabric.terminal_host[t] for job in mix.jobs for t in job.terminals.tolist()}
    return rails.note(hosts) if rails else ""


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


def mix_of_spec(spec: str, fabric: Fabric) -> JobMix:
    """The multi-switch jobs of a spec of synthetic jobs (`jobs/synthetic.py`)."""
    return multi_switch_mix(fabric, jobs_of_spec(spec, fabric))


def synthetic_mix(fabric: Fabric, seed: int) -> JobMix:
    """The multi-switch jobs of `synthetic_jobs`."""
    return multi_switch_mix(fabric, synthetic_jobs(fabric, seed))
