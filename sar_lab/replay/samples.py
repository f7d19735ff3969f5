"""The sampled moments of a history, and the states between which they change.

Consecutive moments with equal mixes are one *state*, which is routed and measured once. Whether a
job is a multi-switch job depends on that job alone, so it is determined once for each job.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs.model import Job, JobMix
from sar_lab.history import JobHistory, LeftOut, place_history
from sar_lab.history.job_history import F64
from sar_lab.history.window import between, clock_words

MOST_SAMPLES = 2_000_000


@dataclass(frozen=True, eq=False)
class Samples:
    """M moments in K states."""

    at: F64
    """float64[M], Unix seconds, ascending."""
    state: NDArray[np.int64]
    """int64[M]: the state at each moment; it starts with 0 and increases by 0 or 1."""
    parts: tuple[tuple[Job, ...], ...]
    """The parts (`PlacedHistory.parts`) of the multi-switch jobs that run at any of these
    moments."""
    running: tuple[tuple[int, ...], ...]
    """K tuples of indices into `parts`: the running jobs of each state."""
    left_out: tuple[LeftOut, ...]
    """Records of the history that are not used."""
    single_switch: int
    """The number of jobs that stay on one leaf switch, or have no host in the fabric."""

    @property
    def states(self) -> int:
        return len(self.running)

    def mix(self, state: int) -> JobMix:
        """The job mix of a state."""
        return JobMix.of(part for j in self.running[state] for part in self.parts[j])


def samples_of(
    fabric: Fabric,
    history: JobHistory,
    every: float | None,
    begin: float | None = None,
    until: float | None = None,
) -> Samples:
    """Moments `every` so many seconds, or (None) at every change, from `begin` to just before
    `until`; the defaults are those of the history. Raises `InputError` where no job is sampled."""
    first, last = history.span
    if np.isinf(history.end).any():
        last = float(np.nextafter(last, np.inf))  # that moment still has jobs
    begin = first if begin is None else begin
    until = last if until is None else until
    if not begin < until:
        raise InputError(
            f"{history.name} has no job {between(history, begin, until)}",
            remedy=f"it covers {between(history, first, last)} ({clock_words(history)})",
        )
    placed = place_history(history, fabric)
    spans = [
        (float(history.start[j]), float(history.end[j]), parts)
        for j, parts in enumerate(placed.parts)
        if parts and history.start[j] < until and history.end[j] > begin
    ]
    if not spans:
        raise InputError(
            f"no job of {history.name} spans two leaf switches of {fabric.name} in that time",
            remedy="check that the history belongs to this fabric, and --from and --until",
        )
    at = _moments(spans, every, begin, until)
    state, running = _states(at, spans)
    return Samples(
        at,
        state,
        tuple(parts for _, _, parts in spans),
        running,
        (*history.left_out, *placed.left_out),
        sum(not parts for parts in placed.parts),
    )


Span = tuple[float, float, tuple[Job, ...]]
"""When a job begins and ends, and its parts."""


def _moments(
    spans: list[Span],
    every: float | None,
    begin: float,
    until: float,
) -> F64:
    if every is None:
        moments = np.array([t for start, end, _ in spans for t in (start, end)], np.float64)
        moments = np.unique(np.append(np.clip(moments, begin, until), begin))
        return moments[moments < until]
    if not every > 0 or (until - begin) / every > MOST_SAMPLES:
        raise InputError(
            f"--every {every / 60:g} is impossible over {(until - begin) / 86400:.1f} days",
            remedy=f"give --every more than 0, and at most {MOST_SAMPLES:,} samples in all",
        )
    count = max(1, int(np.ceil((until - begin) / every)))
    return np.array(begin + every * np.arange(count), np.float64)


def _states(at: F64, spans: list[Span]) -> tuple[NDArray[np.int64], tuple[tuple[int, ...], ...]]:
    """The state of each moment, and the running jobs of each state (indices into `spans`)."""
    state = np.zeros(len(at), np.int64)
    states: list[tuple[int, ...]] = []
    keys: list[frozenset[bytes]] = []
    key_of = [b"".join(part.key for part in parts) for _, _, parts in spans]
    order = sorted(range(len(spans)), key=lambda i: spans[i][0])
    running: set[int] = set()
    following = 0
    for m, now in enumerate(at):
        changed = not states
        while following < len(order) and spans[order[following]][0] <= now:
            running.add(order[following])
            following, changed = following + 1, True
        if over := {i for i in running if spans[i][1] <= now}:
            running -= over
            changed = True
        if changed:
            key = frozenset(key_of[i] for i in running)
            if not keys or key != keys[-1]:
                keys.append(key)
                states.append(tuple(sorted(running)))
        state[m] = len(states) - 1
    return state, tuple(states)
