"""Which free nodes give a job most of its speed and hurt others least, by the tables in force.

A job of N nodes that takes s times as long as without contention, all messages at once, does the
work of N / s nodes: the rest stands idle. The *cost* of a placement is what stands idle of the job
and, more than before, of every other job. It starts from Slurm's tree rule and from placements on
other numbers of leaf switches, and changes nodes, or all nodes of a switch, as long as that helps.
All draws are the same each time.

**Weak spot:** the search is no proof that nothing is better, and it looks at all messages at once;
one message at a time is measured of the results alone. A subnet manager that reroutes at the start
of each job, as sar-agent does, will have other tables by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import F64, I64, U32
from sar_agent.jobs.model import Job, JobMix, make_job
from sar_agent.jobs.tree_placement import TreePlacement
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.spread import LeafSwitches, leaf_switches
from sar_agent.slurm.conf_lists import write_list

MOST_CHANGES_TRIED = 600
"""Changes that are tried from each start."""
TREE_RULE = "Slurm's tree rule"
JOBS_SHOWN = 3


@dataclass(frozen=True)
class Slowed:
    """A running job that a placement slows down, all messages at once."""

    job: str
    before: float
    after: float
    """Times as long as without contention."""


@dataclass(frozen=True)
class Candidate:
    """Nodes for the job, and what they cost."""

    rule: str
    """`TREE_RULE`, or empty for a result of the search."""
    hosts: tuple[str, ...]
    switches: int
    """Leaf switches."""
    at_once: float
    one_at_a_time: float
    """Times as long as without contention."""
    own_cost: float
    others_cost: float
    """Nodes that stand idle: of this job, and more than before of all others."""
    slowed: tuple[Slowed, ...]
    """The worst first."""
    rails: int = 1
    """As in `LeafSwitches`."""

    @property
    def cost(self) -> float:
        return self.own_cost + self.others_cost

    def __lt__(self, other: Candidate) -> bool:
        """Whether it is better: cheaper, or as cheap and faster one message at a time."""
        return self._order < other._order

    @property
    def _order(self) -> tuple[float, float, int, tuple[str, ...]]:
        return round(self.cost, 3), round(self.one_at_a_time, 3), self.switches, self.hosts

    def words(self) -> str:
        """For people."""
        lines = [
            (f"{self.rule}: " if self.rule else "") + write_list(self.hosts),
            f"    on {LeafSwitches(self.switches, self.rails).words()}; all messages at once "
            f"{self.at_once:.2f}, one at a time {self.one_at_a_time:.2f} times as long as without "
            "contention",
        ]
        if self.cost >= 0.005:
            lines.append(
                f"    as if {self.cost:.1f} nodes stood idle: {self.own_cost:.1f} of this job, "
                f"{self.others_cost:.1f} of others"
            )
        for each in self.slowed[:JOBS_SHOWN]:
            lines.append(f"    slows job {each.job}: {each.before:.2f} → {each.after:.2f}")
        if (more := len(self.slowed) - JOBS_SHOWN) > 0:
            lines.append(f"    and {more} more jobs")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self) | {"cost": self.cost}


class Placer:
    """Placements beside the jobs of the dumps, by the tables of the dumps."""

    def __init__(self, dumps: SiteDumps, free: Iterable[str]) -> None:
        """`free`: names of nodes, of which those count that the fabric has."""
        self.fabric, self.routes, self.mix = dumps.fabric, dumps.routes, dumps.mix
        self._traffic: Traffic = dumps.traffic
        self._tree = tree = TreePlacement(self.fabric)
        self.compute = frozenset(host for hosts in tree.free.values() for host in hosts)
        """The hosts that jobs can use, free or not."""
        names = {self.fabric.hosts.name_of(host) for host in free}
        self.free = {leaf: [h for h in hosts if h in names] for leaf, hosts in tree.free.items()}
        self._leaf = {host: leaf for leaf, hosts in self.free.items() for host in hosts}
        hosts = (len(_hosts(self.fabric, job)) for job in self.mix.whole_jobs)
        self._sizes = np.array([*hosts], np.float64)

    @property
    def count(self) -> int:
        """Free nodes that the fabric has."""
        return len(self._leaf)

    def tree_rule(self, count: int) -> list[str]:
        """The nodes that Slurm's tree rule would give. Raises `ValueError` without enough."""
        self._tree.free = {leaf: list(hosts) for leaf, hosts in self.free.items()}
        return self._tree.start(count)

    def candidates(self, count: int) -> list[Candidate]:
        """Slurm's tree rule, then up to three placements that are better, the best first. Raises
        `ValueError` without enough free nodes."""
        tree = self.tree_rule(count)
        most = max(map(len, self.free.values()))
        leaves = {len({self._leaf[host] for host in tree})}
        leaves |= {-(-count // each) for each in range(1, min(most, count) + 1)}
        even = [self._on(count, number) for number in sorted(leaves)]
        starts = [tree, *sorted(filter(None, even), key=self.cost)[:2]]
        found = {tuple(sorted(self._improved(start), key=hca_order)) for start in starts}
        baseline = self.candidate(tree, TREE_RULE)
        others = [self.candidate(hosts) for hosts in found if {*hosts} != {*tree}]
        return [baseline, *sorted(each for each in others if each < baseline)]

    def candidate(self, hosts: Sequence[str], rule: str = "") -> Candidate:
        """What a placement costs."""
        own, after = self._loads(hosts)
        idle = self._idle(after)
        slowed = [
            Slowed(job.id, float(self._before[j]), float(after[j]))
            for j, job in enumerate(self.mix.whole_jobs)
            if after[j] > self._before[j] + 0.005
        ]
        new, phases, leaves = self._job(hosts), 1.0, leaf_switches(self.fabric, hosts)
        if new.jobs:
            all_jobs = JobMix((*self.mix.jobs, *new.jobs))
            times = collective_contention(self.fabric, all_jobs, self.routes.egress[0])
            phases = float(times[-len(new.jobs) :].max())
        return Candidate(
            rule,
            tuple(sorted(hosts, key=hca_order)),
            leaves.total,
            own,
            max(1.0, phases),
            len(hosts) * (1 - 1 / own),
            idle,
            tuple(sorted(slowed, key=lambda each: each.before - each.after)),
            leaves.rails,
        )

    def cost(self, hosts: Sequence[str]) -> float:
        """Nodes that stand idle."""
        own, after = self._loads(hosts)
        return len(hosts) * (1 - 1 / own) + self._idle(after)

    def _idle(self, after: F64) -> float:
        return float((self._sizes * (1 / self._before - 1 / after)).sum())

    @cached_property
    def _before(self) -> F64:
        return np.maximum(1.0, self.mix.largest(self._traffic.job_load))

    @cached_property
    def _used(self) -> tuple[U32, I64]:
        """Channels of all parts of jobs, one after the other, and the job of each."""
        lists = self._traffic.lists
        job = np.repeat(self.mix.whole_of, np.diff(lists.offset)).astype(np.int64)
        return lists.channel[: lists.offset[-1]], job

    def _job(self, hosts: Sequence[str]) -> JobMix:
        ports = (t for host in hosts for t in self.fabric.job_ports[host])
        return multi_switch_mix(self.fabric, [make_job("", ports)])

    def _loads(self, hosts: Sequence[str]) -> tuple[float, F64]:
        """(this job's, float64[J] the others'): times as long as without contention."""
        new = self._job(hosts)
        if not new.jobs:
            return 1.0, self._before
        own = traffic_of(self.fabric, new, self.routes)
        total = self._traffic.load + own.load
        channel, of = self._used
        after = self._before.copy()
        hit = own.load[channel] > 0
        np.maximum.at(after, of[hit], total[channel[hit]])
        mine = own.lists.channel[: own.lists.offset[-1]]
        return max(1.0, float(total[mine].max(initial=0.0))), after

    def _on(self, count: int, leaves: int) -> list[str] | None:
        """As evenly as possible on so many leaf switches, those with most free nodes."""
        full = sorted(self.free, key=lambda leaf: (-len(self.free[leaf]), leaf))[:leaves]
        hosts: list[str] = []
        for n, leaf in enumerate(reversed(full)):
            hosts += self.free[leaf][: -(-(count - len(hosts)) // (len(full) - n))]
        return hosts if len(hosts) == count else None

    def _improved(self, hosts: list[str]) -> list[str]:
        """Changes single nodes, or all nodes on one leaf switch, while that costs less."""
        random, best = np.random.default_rng(0), self.cost(hosts)
        everything = sorted(self._leaf, key=hca_order)
        for _ in range(MOST_CHANGES_TRIED):
            if best < 1e-9:
                break
            taken = set(hosts)
            gone = hosts[int(random.integers(len(hosts)))]
            come = everything[int(random.integers(len(everything)))]
            away, to = {gone}, [come]
            if random.random() < 0.5:
                away = {h for h in hosts if self._leaf[h] == self._leaf[gone]}
                spare = [h for h in self.free[self._leaf[come]] if h not in taken or h in away]
                to = [spare[i] for i in random.permutation(len(spare))[: len(away)]]
            if come in taken - away or len(to) < len(away):
                continue
            changed = [host for host in hosts if host not in away] + to
            if (cost := self.cost(changed)) < best - 1e-9:
                hosts, best = changed, cost
        return hosts


def _hosts(fabric: Fabric, job: Job) -> set[str]:
    return {fabric.terminal_host[t] for t in job.terminals}
