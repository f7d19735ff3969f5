"""A simple batch scheduler: first come, first served, with EASY backfilling.

A later job of the queue starts early if it does not delay the first one: it ends before the first
job can start, or takes nodes that the first job will not need. Jobs do not share nodes. Run times
are known exactly, unlike real users' estimates, which makes the machine somewhat fuller.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from sar_agent.fabric.model import I32
from sar_lab.mixes.lublin import SubmittedJobs
from sar_lab.mixes.node_selection import Pick

DEPTH = 100
"""The number of queued jobs that backfilling considers."""


@dataclass(frozen=True, eq=False)
class ScheduledJob:
    """The time and the nodes of a job that ran."""

    start: float
    end: float
    nodes: I32


def run_queue(jobs: SubmittedJobs, nodes: int, pick: Pick) -> list[ScheduledJob]:
    """Runs all jobs on `nodes` nodes; returns them in the order of their start. No job may need
    more nodes than that."""
    free = np.ones(nodes, np.bool_)
    running: list[tuple[float, int, I32]] = []
    queue: list[int] = []
    ran: list[ScheduledJob] = []
    following = 0
    while following < len(jobs.arrival) or queue:
        arrives = jobs.arrival[following] if following < len(jobs.arrival) else np.inf
        ends = running[0][0] if running else np.inf
        now = float(min(arrives, ends))
        while running and running[0][0] <= now:
            free[heapq.heappop(running)[2]] = True
        while following < len(jobs.arrival) and jobs.arrival[following] <= now:
            queue.append(following)
            following += 1
        for job in _startable(queue, jobs, running, int(free.sum()), now):
            where = pick(free, int(jobs.nodes[job]))
            free[where] = False
            end = now + float(jobs.seconds[job])
            heapq.heappush(running, (end, job, where))
            ran.append(ScheduledJob(now, end, where))
    return ran


def _startable(
    queue: list[int],
    jobs: SubmittedJobs,
    running: list[tuple[float, int, I32]],
    room: int,
    now: float,
) -> list[int]:
    """Removes the jobs that start now from the queue, and returns them."""
    started: list[int] = []
    while queue and jobs.nodes[queue[0]] <= room:
        room -= int(jobs.nodes[queue[0]])
        started.append(queue.pop(0))
    if not queue or not room:
        return started
    shadow, spare = _reservation(int(jobs.nodes[queue[0]]), jobs, running, started, room, now)
    for job in list(queue[1:DEPTH]):
        size = int(jobs.nodes[job])
        in_time = now + float(jobs.seconds[job]) <= shadow
        if size <= room and (in_time or size <= spare):
            room -= size
            spare -= 0 if in_time else size
            queue.remove(job)
            started.append(job)
    return started


def _reservation(
    wanted: int,
    jobs: SubmittedJobs,
    running: list[tuple[float, int, I32]],
    started: list[int],
    room: int,
    now: float,
) -> tuple[float, int]:
    """The time at which `wanted` nodes are free at the latest, and the further free nodes then."""
    ends = [(end, len(nodes)) for end, _, nodes in running]
    ends += [(now + float(jobs.seconds[job]), int(jobs.nodes[job])) for job in started]
    for end, size in sorted(ends):
        room += size
        if room >= wanted:
            return end, room - wanted
    raise AssertionError("unreachable: no job needs more than all nodes")
