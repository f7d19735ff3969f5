"""A batch queue with EASY backfilling over any kind of placement.

All jobs are there at the beginning, so that a machine is as full as its placement allows. A later
job may start early if it ends before the first one of the queue can start. That moment follows from
the placement itself: running jobs are taken away in the order of their ends until the first one
fits. `sar_lab/mixes/backfill.py` counts nodes only, which is not enough where cables decide.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from sar_agent.fabric.model import I32
from sar_lab.mixes.lublin import SubmittedJobs
from sar_lab.mixes.node_selection import Free, Pick

DEPTH = 50
"""The number of queued jobs that backfilling considers."""
Place = TypeVar("Place")


class Space(Protocol[Place]):
    """The free part of a machine."""

    def copy(self) -> Self: ...

    def place(self, size: int) -> Place | None: ...

    def release(self, shares: Place) -> None: ...


@dataclass
class NodeSpace:
    """Nodes without cables; `pick` chooses among the free ones."""

    free: Free
    pick: Pick

    def copy(self) -> NodeSpace:
        """The same state; draws go on where they are."""
        return NodeSpace(self.free.copy(), self.pick)

    def place(self, size: int) -> I32 | None:
        """Takes nodes, None where there are too few."""
        if np.count_nonzero(self.free) < size:
            return None
        nodes = self.pick(self.free, size)
        self.free[nodes] = False
        return nodes

    def release(self, shares: I32) -> None:
        """Gives nodes back."""
        self.free[shares] = True


@dataclass(frozen=True, eq=False)
class PlacedJob(Generic[Place]):
    """The time and the place of a job that ran."""

    start: float
    end: float
    size: int
    place: Place


def run_placed(jobs: SubmittedJobs, space: Space[Place]) -> list[PlacedJob[Place]]:
    """Runs all jobs, in the order of their start. Each must fit into the empty machine."""
    queue = list(range(len(jobs.nodes)))
    running: list[tuple[float, int, Place]] = []
    ran: list[PlacedJob[Place]] = []
    now = 0.0

    def start(job: int, place: Place) -> None:
        end = now + float(jobs.seconds[job])
        queue.remove(job)
        heapq.heappush(running, (end, job, place))
        ran.append(PlacedJob(now, end, int(jobs.nodes[job]), place))

    while queue:
        while queue and (place := space.place(int(jobs.nodes[queue[0]]))) is not None:
            start(queue[0], place)
        if queue:
            first = _first_start(int(jobs.nodes[queue[0]]), running, space.copy())
            too_large: set[int] = set()  # what did not fit does not fit into less
            for job in queue[1:DEPTH]:
                size = int(jobs.nodes[job])
                if size in too_large or now + float(jobs.seconds[job]) > first:
                    continue
                place = space.place(size)
                if place is None:
                    too_large.add(size)
                else:
                    start(job, place)
        if running:
            now = running[0][0]
        while running and running[0][0] <= now:
            space.release(heapq.heappop(running)[2])
    return ran


def _first_start(size: int, running: list[tuple[float, int, Place]], space: Space[Place]) -> float:
    """When the first job of the queue can start at the latest."""
    for end, _, place in sorted(running, key=lambda each: each[:2]):
        space.release(place)
        if space.copy().place(size) is not None:
            return end
    raise ValueError(f"a job of {size} nodes does not fit into the empty machine")
