"""The steps of `Flows` in ticks, for both kernels of the packet simulator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I64, U32, Bool
from sar_agent.util.kernels import kernel_part

BEFORE = np.int64(-1)
"""A moment that does not come."""


class PacketSteps(NamedTuple):
    """P steps of F messages."""

    step: U32
    """uint32[F], ascending."""
    last: Bool
    """bool[P]: no step waits for this one."""
    wait: I64
    """int64[P]: ticks from the end of the previous step, or from the beginning."""
    first: I64
    """int64[P + 1]: the first message of each step."""
    running: I64
    """int64[P]: messages that have begun and not ended."""
    starts: I64
    """int64[P]: the tick at which a step begins, or `BEFORE`."""


@kernel_part
def steps_of(step: U32, last: Bool, wait: I64) -> tuple[PacketSteps, np.int64]:  # pragma: no cover
    """The steps before anything has begun, and the first tick at which one does."""
    first = np.zeros(len(wait) + 1, np.int64)
    for i in range(len(step)):
        first[step[i] + np.uint32(1)] = i + 1
    running = np.zeros(len(wait), np.int64)
    starts = np.full(len(wait), BEFORE, np.int64)
    next_start = BEFORE
    for s in range(len(wait)):
        if s == 0 or last[s - 1]:
            starts[s] = wait[s]
            if next_start < 0 or wait[s] < next_start:
                next_start = wait[s]
    return PacketSteps(step, last, wait, first, running, starts), next_start


@kernel_part
def message_ended(
    steps: PacketSteps, f: np.uint32, now: np.int64, next_start: np.int64
) -> np.int64:  # pragma: no cover
    """The next tick at which a step begins, now that message f has ended."""
    s = steps.step[f]
    steps.running[s] -= 1
    if steps.running[s] or steps.last[s] or s + 1 >= len(steps.wait):
        return next_start
    at = now + max(steps.wait[s + 1], 1)
    steps.starts[s + 1] = at
    return at if next_start < 0 or at < next_start else next_start


@kernel_part
def wheel_size(slowest: np.int64, whole: int, hop: int) -> np.int64:  # pragma: no cover
    """Buckets, a power of two, for all events until a segment of `whole` flits is over the slowest
    link and a switch."""
    size = np.int64(2)
    while size < slowest * (whole + 2) + hop + 2:
        size *= 2
    return size
