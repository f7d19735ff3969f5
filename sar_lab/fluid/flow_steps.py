"""`Flows`: the messages of all jobs, and the order of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U32, Bool
from sar_lab.fluid.flow_links import F64


class Flows(NamedTuple):
    """F flows in P steps. All flows of a step start together, `wait` seconds after time 0 or after
    the end of all flows of the previous step: consecutive steps are phases with barriers. No step
    is empty."""

    source: U32
    """uint32[F], terminal."""
    destination: U32
    """uint32[F], another terminal."""
    size: F64
    """float64[F], Gbit, above 0."""
    job: U32
    """uint32[F], index in the mix."""
    step: U32
    """uint32[F], ascending."""
    last: Bool
    """bool[P]: no step waits for this one; the next step starts at time 0."""
    wait: F64
    """float64[P], seconds of computation before the flows start."""


def flows_of_steps(
    steps: Sequence[I32],
    size: ArrayLike,
    *,
    job: ArrayLike = 0,
    last: ArrayLike | None = None,
    wait: ArrayLike = 0.0,
) -> Flows:
    """The flows of steps int32[n, 2], source and destination: `size` Gbit of each flow, and `job`,
    `last` and `wait` of each step, or one for all; without `last`, each step waits for the one
    before it."""
    number = np.arange(len(steps), dtype=np.uint32)
    ends = np.concatenate([np.empty((0, 2), np.int32), *steps]).astype(np.uint32)
    step = np.repeat(number, np.array(list(map(len, steps)), np.int64))
    return Flows(
        np.ascontiguousarray(ends[:, 0]),
        np.ascontiguousarray(ends[:, 1]),
        np.broadcast_to(np.asarray(size, np.float64), len(ends)).copy(),
        np.broadcast_to(np.asarray(job, np.uint32), len(number))[step],
        step,
        np.broadcast_to(number == len(number) - 1 if last is None else last, len(number)).copy(),
        np.broadcast_to(np.asarray(wait, np.float64), len(number)).copy(),
    )


def job_ends(flows: Flows, end: F64, jobs: int) -> F64:
    """float64[J], seconds: when the last flow of each job ends; 0 for a job without flows."""
    last = np.zeros(jobs)
    np.maximum.at(last, flows.job, end)
    return last


def seconds_alone(fabric: Fabric, flows: Flows, of: U32, count: int) -> F64:
    """float64[count], seconds: what the flows of each number in `of` (uint32[F], such as their job)
    take together if only the hosts' own links limit them."""
    alone = np.zeros(count)
    for ends in (flows.source, flows.destination):
        place, which = np.unique(of.astype(np.int64) * fabric.terminals + ends, return_inverse=True)
        total = np.bincount(which, flows.size) / fabric.terminal_rate[place % fabric.terminals]
        np.maximum.at(alone, place // fabric.terminals, total)
    return alone
