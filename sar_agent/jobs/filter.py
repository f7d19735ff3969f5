"""Filters the jobs that matter to routes, and finds whether any of them changed.

This is section 3.2.1 of the SAR paper (Domke & Hoefler, SC16): only jobs on at least two leaf
switches gain from routes of their own, and two lists of such jobs are the same if they differ in
job ids alone. The original tool ignored jobs that end; here the whole list is compared, and a job
that lost hosts with a dead switch is told from one that ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sar_agent.jobs.record import JobRecord

HostSets = frozenset[frozenset[str]]


class MultiSwitch(NamedTuple):
    """The multi-switch jobs among all jobs.

    `jobs` are those on two leaf switches or more, without their unknown hosts. `unknown_hosts` are
    hosts of any job whose leaf switch is not known; the caller logs them once.
    """

    jobs: tuple[JobRecord, ...]
    unknown_hosts: frozenset[str]


def multi_switch(
    records: Iterable[JobRecord], leaf_of: Callable[[str], Collection[Hashable] | None]
) -> MultiSwitch:
    """The jobs with at least two known hosts on at least two leaf switches.

    `leaf_of` gives a host's leaf switches: several for a host with several ports or rails, none
    for an unknown host, which is left out while the rest of its job goes on. One host alone is
    never a multi-switch job, however many leaves it is attached to.
    """
    jobs: list[JobRecord] = []
    unknown: set[str] = set()
    for record in records:
        leaves = {host: leaf_of(host) or () for host in record.hosts}
        known = tuple(host for host in record.hosts if leaves[host])
        unknown.update(host for host in record.hosts if not leaves[host])
        if len(known) >= 2 and len(set().union(*leaves.values())) >= 2:
            jobs.append(record if known == record.hosts else record._replace(hosts=known))
    return MultiSwitch(tuple(jobs), frozenset(unknown))


def host_sets(records: Iterable[JobRecord]) -> HostSets:
    """The sets of hosts that send to each other, without job ids: routes depend on these alone.

    A set, not a multiset: two jobs that share exactly the same nodes use the same pairs, and
    Algorithm 1 counts a pair once however many jobs it has in common.
    """
    return frozenset(frozenset(record.hosts) for record in records)


def is_young(record: JobRecord, now: float, min_age: float) -> bool:
    """Whether the job started less than `min_age` seconds before `now` (Unix seconds).

    A job whose start is unknown, or so far ahead that a clock was set back, is not young: better
    one reroute too many than a job never seen.
    """
    return min_age > 0 and record.start is not None and abs(now - record.start) < min_age


def young(records: Iterable[JobRecord], now: float, min_age: float) -> tuple[JobRecord, ...]:
    """Those of `records` that are young, see `is_young`."""
    return tuple(record for record in records if is_young(record, now, min_age))


@dataclass(frozen=True)
class JobChange:
    """How the jobs differ from those that the routes in force were made for; false if they do not.

    A job that runs on, but lost hosts with a dead switch or got them back, neither started nor
    ended."""

    started: HostSets
    ended: HostSets
    moved: int = 0
    """Jobs that run on, with other hosts in the fabric than before."""
    lost: frozenset[str] = frozenset()
    """Their hosts that have left the fabric."""
    back: frozenset[str] = frozenset()
    """Their hosts that have come back."""
    late: int = 0
    """Jobs that ran already when the routes were made, and were not multi-switch jobs then."""

    def __bool__(self) -> bool:
        return bool(self.started or self.ended or self.moved or self.late)


@dataclass(frozen=True)
class Running:
    """What tells a job that started from one that ran on with other hosts."""

    records: Collection[JobRecord] = ()
    """All running jobs, with all hosts that Slurm gave them."""
    missing: frozenset[str] = frozenset()
    """Hosts among them that are not in the fabric."""
    since: float = 0.0
    """When the routes in force were made, Unix seconds."""

    def ran_before(self, record: JobRecord) -> bool:
        """Whether the job is known to have run when the jobs were read for these routes."""
        return record.start is not None and record.start + READ_BEFORE < self.since


READ_BEFORE = 60.0
"""Seconds from the last look at the queue to the install of routes for it, at most."""


def job_change(
    before: HostSets,
    records: Collection[JobRecord],
    now: float = 0.0,
    min_age: float = 0.0,
    running: Running | None = None,
) -> JobChange:
    """How the multi-switch jobs `records` differ from `before`, those the routes in force know.

    Young jobs (see `young`) do not trigger: they are not in `started`. But once something else
    triggers, the caller routes for *all* `records` and remembers `host_sets(records)`, young ones
    included: they run and they send, and to leave them out would only make the next reroute sure.
    A young job that ends again before it was ever routed for is no change at all. Without
    `running`, each other set of hosts is a job that started or ended.
    """
    current = host_sets(records)
    old_enough = host_sets(record for record in records if not is_young(record, now, min_age))
    change = JobChange(started=old_enough - before, ended=before - current)
    return _with_moved(change, running) if change and running else change


def _with_moved(change: JobChange, running: Running) -> JobChange:
    """Jobs that run on are taken from those that started and ended."""
    started, ended = set(change.started), set(change.ended)
    lost, back = set[str](), set[str]()
    moved = late = 0
    ended_at: dict[str, list[frozenset[str]]] = {}
    for hosts in ended:
        for host in hosts:
            ended_at.setdefault(host, []).append(hosts)
    for record in running.records:
        given, ran = frozenset(record.hosts), running.ran_before(record)
        known = given - running.missing
        found = {hosts for host in given for hosts in ended_at.get(host, ()) if hosts <= given}
        # Without a start, a job on more hosts than one that ended may be another one.
        found = {hosts for hosts in found if hosts != known and (ran or hosts - known)}
        if found:
            moved += 1
            ended -= found
            lost |= frozenset().union(*found) - known
            if known in started:
                back |= known - frozenset().union(*found)
        elif ran and known in started:
            late += 1
        else:
            continue
        started.discard(known)
    return JobChange(
        frozenset(started), frozenset(ended), moved, frozenset(lost), frozenset(back), late
    )
