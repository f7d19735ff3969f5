"""Maps jobs from host names to terminals: records of a source become a mix on a fabric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

from sar_agent.fabric import Fabric
from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.jobs.model import Job, JobMix, live_part, make_job, multi_switch_mix
from sar_agent.jobs.record import JobRecord


@dataclass(frozen=True)
class MappedJobs:
    """A mix, and the hosts without a terminal in the fabric, which are left out of their jobs."""

    mix: JobMix
    unknown_hosts: frozenset[str]


def mix_of_host_sets(fabric: Fabric, jobs: Iterable[frozenset[str]]) -> JobMix:
    """The mix of jobs of which only the hosts are known; their ids are numbers."""
    terminals = [[t for host in hosts for t in fabric.job_ports.get(host, ())] for hosts in jobs]
    return multi_switch_mix(fabric, (make_job(str(i), t) for i, t in enumerate(terminals)))


def mix_of_records(fabric: Fabric, records: Iterable[JobRecord]) -> MappedJobs:
    """The multi-switch jobs, with the terminals of each job's hosts that jobs use: every rail,
    or those that `fabric.job_hcas` names. Jobs of the last call on this fabric are remembered, or
    on one with the same hosts."""
    global _last
    if fabric not in _mapped and (last := _last and _last()) and same_hosts(last, fabric):
        _mapped[fabric] = _mapped.get(last, {})
    _last = ref(fabric)
    before = _mapped.get(fabric, {})
    mapped = [(record, before.get(record) or _map(fabric, record)) for record in records]
    _mapped[fabric] = dict(mapped)
    mix = JobMix.of(job for _, (job, _) in mapped if job)
    return MappedJobs(mix, frozenset().union(*(unknown for _, (_, unknown) in mapped)))


_Mapped = tuple[Job | None, frozenset[str]]
_mapped: WeakKeyDictionary[Fabric, dict[JobRecord, _Mapped]] = WeakKeyDictionary()
_last: ref[Fabric] | None = None


def _map(fabric: Fabric, record: JobRecord) -> _Mapped:
    """The job on the fabric, None where it is no multi-switch job there, and its unknown hosts."""
    known = [t for host in record.hosts for t in fabric.job_ports.get(host, ())]
    job = live_part(fabric, make_job(record.id, known, record.traffic, record.weight))
    return job, frozenset(host for host in record.hosts if host not in fabric.hosts)
