"""`History`: jobs with their start, end and nodes, as arrays, whatever told of them.

Host names stay names until a fabric is asked: the same history may be held against several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.model import Job, JobMix, make_job, multi_switch_mix

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """J jobs in the order of their start."""

    name: str
    """Where it came from, for messages."""
    job: tuple[str, ...]
    start: F64
    """float64[J], Unix seconds."""
    end: F64
    """float64[J], later than `start`; inf while it runs on."""
    hosts: tuple[str, ...]
    """All names that occur."""
    offset: NDArray[np.int64]
    """int64[J + 1] into `node`."""
    node: I32
    """int32[sum of nodes], indices into `hosts`."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was not taken, in words, and how often."""
    label: str = ""
    """What must be said beside every number made of it: `synthetic`, …; empty for what was
    measured."""

    @property
    def jobs(self) -> int:
        return len(self.job)

    @cached_property
    def begin(self) -> float:
        """The first start."""
        return float(self.start.min()) if self.jobs else 0.0

    @cached_property
    def until(self) -> float:
        """The last start or end that is known."""
        known = self.end[np.isfinite(self.end)]
        return float(max([self.begin, *self.start[-1:], *([known.max()] if len(known) else [])]))

    def nodes_of(self, j: int) -> tuple[str, ...]:
        """Host names of job j."""
        return tuple(self.hosts[n] for n in self.node[self.offset[j] : self.offset[j + 1]])

    def running(self, at: float) -> NDArray[np.int64]:
        """int64[·]: jobs that have started and not ended."""
        return np.flatnonzero((self.start <= at) & (at < self.end))

    def on(self, fabric: Fabric) -> tuple[tuple[Job | None, ...], Mapping[str, int]]:
        """Each job's terminals there, None for one that is no multi-switch job; and nodes that
        the fabric does not know, by name, with the number of jobs that name them."""
        of_host = [fabric.hosts.get(host, ()) for host in self.hosts]
        found: list[Job | None] = []
        unknown: dict[str, int] = {}
        for j, name in enumerate(self.job):
            terminals: list[int] = []
            for n in self.node[self.offset[j] : self.offset[j + 1]]:
                terminals += of_host[n]
                if not of_host[n]:
                    unknown[self.hosts[n]] = unknown.get(self.hosts[n], 0) + 1
            kept = multi_switch_mix(fabric, [make_job(name, terminals)]).jobs
            found.append(kept[0] if kept else None)
        return tuple(found), unknown

    def mix(self, fabric: Fabric, at: float) -> JobMix:
        """The multi-switch jobs that run then."""
        running = self.running(at)
        terminals = (
            (self.job[j], [t for host in self.nodes_of(j) for t in fabric.hosts.get(host, ())])
            for j in running
        )
        return multi_switch_mix(fabric, (make_job(name, found) for name, found in terminals))


def make_history(
    name: str,
    jobs: Iterable[tuple[str, float, float, Iterable[str]]],
    left_out: Mapping[str, int] | None = None,
    label: str = "",
) -> History:
    """Of (job, start, end, nodes), in any order."""
    rows = sorted(jobs, key=lambda row: (row[1], row[0]))
    number: dict[str, int] = {}
    nodes = [[number.setdefault(host, len(number)) for host in row[3]] for row in rows]
    return History(
        name=name,
        job=tuple(row[0] for row in rows),
        start=np.array([row[1] for row in rows], np.float64),
        end=np.array([row[2] for row in rows], np.float64),
        hosts=tuple(number),
        offset=np.cumsum([0, *map(len, nodes)], dtype=np.int64),
        node=np.array([n for each in nodes for n in each], np.int32),
        left_out=dict(left_out or {}),
        label=label,
    )
