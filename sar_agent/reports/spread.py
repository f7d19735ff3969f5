"""Running jobs on more leaf switches than would do, and pending jobs where Slurm plans them.

The leaf switches of a job are those of all ports that it uses, as everywhere in the project: where
hosts have two rails, 14 leaf switches on each are 28.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.reports.wording import job_words, moment, some
from sar_agent.util.plural import plural

NAMES_SHOWN = 5


class LeafSwitches(NamedTuple):
    """How many leaf switches the ports of some hosts end on."""

    total: int
    rails: int
    """Where each port of a host has leaf switches of its own, as many as each other port: how many
    ports these are. Else 1."""

    def words(self) -> str:
        """Such as `2 switches`, `28 switches (14 on each of 2 rails)`."""
        count = f"{self.total} switch{'es' * (self.total != 1)}"
        each = f" ({self.total // self.rails} on each of {plural(self.rails, 'rail')})"
        return count + each * (self.rails > 1)


@dataclass(frozen=True)
class SpreadJob:
    """A running job, and how few leaf switches its nodes and the free ones allow."""

    job: str
    user: str
    nodes: int
    switches: int
    fewest: int
    rails: int = 1
    """As in `LeafSwitches`."""

    def words(self) -> str:
        """A line."""
        where = f"{plural(self.nodes, 'node')} on {LeafSwitches(self.switches, self.rails).words()}"
        return f"{job_words(self.job, self.user)}: {where}, {self.fewest} would do"


@dataclass(frozen=True)
class PlannedJob:
    """A pending job with the nodes that Slurm plans for it, beside the jobs that run on others."""

    job: str
    user: str
    start: float | None
    """Unix seconds, as Slurm expects; None if not known."""
    nodes: int
    switches: int
    at_once: float
    """Times as long as without contention, all messages at once."""
    links_shared: int
    shared: tuple[tuple[str, float, tuple[str, ...]], ...]
    """Links that it will share: name, predicted load, the other jobs on it; the fullest first."""
    rails: int = 1
    """As in `LeafSwitches`."""

    def words(self, shown: int) -> str:
        """For people; at most `shown` links."""
        when = f", from {moment(self.start)}" if self.start else ""
        lines = [
            f"{job_words(self.job, self.user)}{when}: "
            f"{plural(self.nodes, 'node')} on {LeafSwitches(self.switches, self.rails).words()}, "
            "all "
            f"messages at once {self.at_once:.2f} times as long as without contention; "
            + (
                f"{plural(self.links_shared, 'link')} will be shared"
                if self.shared
                else "shares no link"
            )
        ]
        for name, load, jobs in self.shared[:shown]:
            lines.append(f"    {name}: load {load:.2f}, with {some(jobs, NAMES_SHOWN)}")
        return "\n".join(lines)


def spread_jobs(
    fabric: Fabric, records: Iterable[JobRecord], free: Iterable[str]
) -> list[SpreadJob]:
    """The jobs that are on more leaf switches than needed, the worst first. Hosts that the fabric
    does not have are left out."""
    behind: dict[int, set[int]] = {}
    """The first leaf switch of hosts to all leaf switches of theirs."""
    for ports in fabric.job_ports.values():
        leaves_of = fabric.terminal_switch[list(ports)].tolist()
        behind.setdefault(leaves_of[0], set()).update(leaves_of)
    room = np.zeros(fabric.switches, np.int64)
    np.add.at(room, _first_leaves(fabric, free), 1)
    found = []
    for record in records:
        own = np.zeros_like(room)
        np.add.at(own, leaves := _first_leaves(fabric, record.hosts), 1)
        fewest = fewest_switches(len(leaves), own + room)
        if int((own > 0).sum()) <= fewest:
            continue
        now = leaf_switches(fabric, record.hosts)
        chosen = np.argsort(-(own + room), kind="stable")[:fewest].tolist()
        would_do = len(set().union(*(behind[leaf] for leaf in chosen)))
        if would_do < now.total:
            found.append(
                SpreadJob(record.id, record.user, len(leaves), now.total, would_do, now.rails)
            )
    return sorted(found, key=lambda job: (job.fewest - job.switches, job.job))


def fewest_switches(hosts: int, room: Sequence[int] | np.ndarray[Any, Any]) -> int:
    """How many leaf switches hold so many hosts; `room`: hosts that each has for them."""
    enough = np.cumsum(np.sort(room)[::-1])
    return int(np.searchsorted(enough, hosts)) + 1 if hosts else 0


def planned_jobs(
    traffic: Traffic,
    planned: Iterable[JobRecord],
    most: int | None = None,
    links: int | None = None,
) -> list[PlannedJob]:
    """What pending jobs will share with those jobs of the traffic that need not end for them, the
    soonest first: at most so many jobs, with so many links of each by name."""
    fabric, lists, found = traffic.fabric, traffic.lists, []
    channel = lists.channel[: lists.offset[-1]]
    user = np.repeat(np.arange(len(traffic.mix.jobs)), np.diff(lists.offset))
    for record in sorted(planned, key=lambda r: (r.start or np.inf, r.id))[:most]:
        hosts = [host for host in record.hosts if fabric.job_ports.get(host)]
        taken = {t for host in record.hosts for t in fabric.job_ports.get(host, ())}
        ends = [not taken.isdisjoint(job.whole.terminals.tolist()) for job in traffic.mix.jobs]
        ending = JobMix(tuple(itertools.compress(traffic.mix.jobs, ends)))
        own, gone = (
            traffic_of(fabric, mix, traffic.routes)
            for mix in (mix_of_records(fabric, [record]).mix, ending)
        )
        mine, load = own.load > 0, traffic.load - gone.load + own.load
        stays = ~np.array(ends, np.bool_)[user]
        shared = np.intersect1d(np.flatnonzero(mine), channel[stays])
        shared = shared[np.argsort(-load[shared].round(9), kind="stable")]
        named = tuple(
            (
                fabric.channel_name(c),
                float(load[c]),
                tuple(sorted({traffic.mix.jobs[j].id for j in user[(channel == c) & stays]})),
            )
            for c in shared[:links].tolist()
        )
        at_once = max(1.0, float(load[mine].max(initial=0.0)))
        leaves = leaf_switches(fabric, hosts)
        found.append(
            PlannedJob(record.id, record.user, record.start, len(hosts), leaves.total, at_once,
                       len(shared), named, leaves.rails)
        )  # fmt: skip
    return found


def spread_json(spread: Iterable[SpreadJob], planned: Iterable[PlannedJob]) -> dict[str, Any]:
    """For `--json`."""
    return {"spread": [asdict(job) for job in spread], "planned": [asdict(job) for job in planned]}


def leaf_switches(fabric: Fabric, hosts: Iterable[str]) -> LeafSwitches:
    """Of all ports that jobs on these hosts use. Hosts that the fabric does not have are left
    out."""
    of_port: dict[int, set[int]] = {}
    for host in hosts:
        for port, terminal in enumerate(fabric.job_ports.get(host, ())):
            of_port.setdefault(port, set()).add(int(fabric.terminal_switch[terminal]))
    total = len(set().union(*of_port.values()))
    apart = len({len(leaves) for leaves in of_port.values()}) == 1
    apart &= sum(map(len, of_port.values())) == total
    return LeafSwitches(total, len(of_port) if apart else 1)


def _first_leaves(fabric: Fabric, hosts: Iterable[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """int32[·]: the leaf switch of each host's first port."""
    ports = (fabric.job_ports.get(host) for host in hosts)
    return fabric.terminal_switch[[each[0] for each in ports if each]]
