"""The event loop of the fluid model: rates are constant until a flow ends or a step starts."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import U32, Bool
from sar_agent.util.kernels import kernel, kernel_part
from sar_lab.fluid.flow_links import F64, FlowLinks, end_flow, start_flow
from sar_lab.fluid.flow_steps import Flows
from sar_lab.fluid.max_min_share import set_max_min_rates

DONE = 1e-9
"""A flow with at most this share of its size left has ended, so that flows which end together
by the model also end together despite rounding."""
FINISHED, WAITS, LATER, PAUSED = -1, 0, 1, 2


class FlowProgress(NamedTuple):
    """The state of F flows in P steps."""

    to_go: F64
    """float64[F], Gbit."""
    end: F64
    """float64[F], seconds."""
    begin: F64
    """float64[P], seconds: when the flows of a step start; inf while that is unknown."""
    unfinished: U32
    """uint32[P]: flows of each step that have not ended."""
    first: U32
    """uint32[P + 1]: the flows of step p are `first[p]` to `first[p + 1]`."""
    asks: Bool
    """bool[P]: `advance` returns before this step starts, so that the caller can set its paths."""
    waiting: U32
    """uint32[P], the first `counts[1]`: steps whose start time is known and in the future."""
    running: U32
    """uint32[F], the first `counts[0]`."""
    moving: U32
    """uint32[F], the first `counts[2]`: flows whose rate may change, marked in `moves`."""
    ended: U32
    """uint32[F], scratch."""
    pause: F64
    """float64[F], Gbit: `advance` returns when at most this is left; below 0: never."""
    since: F64
    """float64[F], Gbit: what was left when the flow's traffic was last added to `carried`."""
    carried: F64
    """float64[L], Gbit: what flows have sent over each link, running flows up to `since`."""
    now: F64
    """float64[1], seconds."""
    counts: U32
    """uint32[3]"""


def progress_of(links: FlowLinks, flows: Flows) -> FlowProgress:
    """The state at time 0, before any step has started."""
    size, steps = len(flows.size), len(flows.last)
    first = np.searchsorted(flows.step, np.arange(steps + 1)).astype(np.uint32)
    starts = np.concatenate([[True], flows.last[:-1]])[:steps]
    waiting = np.flatnonzero(starts)
    return FlowProgress(
        flows.size.copy(),
        np.zeros(size),
        np.where(starts, flows.wait, np.inf),
        np.diff(first),
        first,
        np.zeros(steps, np.bool_),
        np.concatenate([waiting, np.zeros(steps - len(waiting))]).astype(np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.full(size, -1.0),
        flows.size.copy(),
        np.zeros(len(links.capacity)),
        np.zeros(1),
        np.array([0, len(waiting), 0], np.uint32),
    )


class TooLong(Exception):
    """A simulation was not done by the time that its caller set."""


SLICE = 0.01
"""Simulated seconds after which `end_times` looks at the clock."""


def end_times(links: FlowLinks, flows: Flows, stop_at: float = np.inf) -> F64:
    """float64[F], seconds: when each flow ends. `links` is modified and cannot be used again.
    Raises `TooLong` where the clock (`time.monotonic`) passes `stop_at`."""
    progress = progress_of(links, flows)
    if stop_at == np.inf:
        advance(links, flows, progress, np.inf)
        return progress.end
    while progress.counts[:2].any():  # flows that run, and steps that wait
        if time.monotonic() > stop_at:
            raise TooLong
        advance(links, flows, progress, float(progress.now[0]) + SLICE)
    return progress.end


@kernel
def advance(
    links: FlowLinks, flows: Flows, progress: FlowProgress, until: float
) -> tuple[int, int]:  # pragma: no cover
    """Simulates up to the next event that concerns the caller, and returns it:

    `FINISHED`; `WAITS`, p: step p is due and `asks`; `LATER`: the time is `until`; `PAUSED`, n: the
    flows `ended[:n]` have reached their `pause`, which the caller must lower.
    """
    to_go, begin, counts = progress.to_go, progress.begin, progress.counts
    while True:
        now = progress.now[0]
        for i in range(counts[1]):
            p = progress.waiting[i]
            if progress.asks[p] and begin[p] <= now:
                return WAITS, int(p)
        _start(links, progress)
        running = progress.running[: counts[0]]
        if counts[2]:
            set_max_min_rates(links, running, progress.moving, counts[2])
            counts[2] = 0
        seconds, pauses = np.inf, False
        for f in running:
            left = to_go[f]
            if progress.pause[f] >= 0:
                left -= progress.pause[f]
            seconds = min(seconds, left / links.rate[f])
        next_step = until
        for p in progress.waiting[: counts[1]]:
            next_step = min(next_step, begin[p])
        if seconds == np.inf and next_step == np.inf:
            return FINISHED, 0
        later = max(next_step, now) if now + seconds >= next_step else now + seconds
        seconds = min(seconds, later - now)
        progress.now[0] = later
        kept = gone = np.uint32(0)
        for f in running:
            to_go[f] -= seconds * links.rate[f]
            least = DONE * flows.size[f]
            if to_go[f] > least:
                progress.running[kept] = f
                kept += np.uint32(1)
                pauses |= progress.pause[f] >= 0 and to_go[f] <= progress.pause[f] + least
                continue
            progress.end[f] = later
            progress.ended[gone] = f
            gone += np.uint32(1)
        counts[0] = kept
        for f in progress.ended[:gone]:
            add_carried(links, progress, f, 0.0)
            end_flow(links, f)
            _ends_step(flows, progress, flows.step[f])
        for f in progress.ended[:gone]:
            counts[2] = freed(links, f, progress.moving, counts[2])
        if pauses:
            return PAUSED, _paused(flows, progress)
        if until <= later:
            return LATER, 0


@kernel_part
def _start(links: FlowLinks, progress: FlowProgress) -> None:  # pragma: no cover
    """Starts the steps that are due."""
    counts = progress.counts
    kept = np.uint32(0)
    for i in range(counts[1]):
        p = progress.waiting[i]
        if progress.begin[p] > progress.now[0]:
            progress.waiting[kept] = p
            kept += np.uint32(1)
            continue
        for f in range(progress.first[p], progress.first[p + 1]):
            start_flow(links, np.uint32(f))
            progress.running[counts[0]] = f
            links.moves[f] = True
            progress.moving[counts[2]] = f
            counts[0] += np.uint32(1)
            counts[2] += np.uint32(1)
    counts[1] = kept


@kernel_part
def _ends_step(flows: Flows, progress: FlowProgress, p: np.uint32) -> None:  # pragma: no cover
    """Counts an ended flow; after the last flow of a step, the start of the next step is known."""
    progress.unfinished[p] -= np.uint32(1)
    if not progress.unfinished[p] and not flows.last[p]:
        following = p + np.uint32(1)
        progress.begin[following] = progress.now[0] + flows.wait[following]
        progress.waiting[progress.counts[1]] = following
        progress.counts[1] += np.uint32(1)


@kernel_part
def _paused(flows: Flows, progress: FlowProgress) -> int:  # pragma: no cover
    """Lists in `ended` the running flows that have reached their pause; returns their number."""
    count = 0
    for f in progress.running[: progress.counts[0]]:
        pause = progress.pause[f]
        if pause >= 0 and progress.to_go[f] <= pause + DONE * flows.size[f]:
            progress.ended[count] = f
            count += 1
    return count


@kernel
def add_carried(
    links: FlowLinks, progress: FlowProgress, f: np.uint32, left: float
) -> None:  # pragma: no cover
    """Adds to `carried` what the flow has sent since `since`; `left` Gbit are left now."""
    sent = progress.since[f] - left
    progress.since[f] = left
    for c in links.link[links.path[f] : links.stop[f]]:
        progress.carried[c] += sent


@kernel_part
def freed(links: FlowLinks, ended: np.uint32, moving: U32, count: int) -> int:  # pragma: no cover
    """Adds to `moving[:count]` the flows that a link of the ended flow limits; returns the
    count."""
    for c in links.link[links.path[ended] : links.stop[ended]]:
        e = links.first[c]
        while e < len(links.link):
            f = links.flow[e]
            e = links.next[e]
            if links.limit[f] == c and not links.moves[f]:
                links.moves[f] = True
                moving[count] = f
                count += 1
    return count
