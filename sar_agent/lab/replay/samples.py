"""The moments of a history that are looked at, and which of them differ.

Consecutive moments with equal mixes are one *state*: it is routed for and measured once. Which jobs
are multi-switch jobs depends on each job alone, so that is found once a job, not once a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs.model import Job, JobMix
from sar_agent.lab.history.model import F64, History

NAMED = 20
"""How many unknown nodes are named; all are counted."""
MOST_SAMPLES = 2_000_000


@dataclass(frozen=True, eq=False)
class Samples:
    """M moments in K states."""

    at: F64
    """float64[M], Unix seconds, ascending."""
    state: NDArray[np.int64]
    """int64[M]: the state at each moment; 0 first, each the one before or the next."""
    jobs: tuple[Job, ...]
    """All multi-switch jobs that run at any of them."""
    running: tuple[tuple[int, ...], ...]
    """K tuples of indices into `jobs`."""
    left_out: Mapping[str, int]
    """What of the history takes no part, in words, and how often."""
    single_switch: int
    """Jobs that stay on one leaf switch: nothing is left out with them, no route is theirs."""

    @property
    def states(self) -> int:
        return len(self.running)

    def mix(self, state: int) -> JobMix:
        """What runs in that state."""
        return JobMix.of(self.jobs[j] for j in self.running[state])


def samples_of(
    fabric: Fabric,
    history: History,
    every: float | None,
    begin: float | None = None,
    until: float | None = None,
) -> Samples:
    """Every so many seconds, or (None) at every change; from `begin` up to, without, `until`, by
    default the history's. Raises `InputError` where there is nothing to look at."""
    begin = history.begin if begin is None else begin
    until = history.until if until is None else until
    found, unknown = history.on(fabric)
    left_out = dict(history.left_out)
    if unknown:
        shown = ", ".join(sorted(unknown)[:NAMED]) + (" …" if len(unknown) > NAMED else "")
        left_out[f"nodes that {fabric.name} does not have ({shown})"] = len(unknown)
        none_known = _jobs_without_known_nodes(history, unknown)
        if none_known:
            left_out[f"jobs of which {fabric.name} has no node"] = none_known
    spans: list[tuple[float, float, Job]] = []
    odd = nodeless = single = 0
    for j, job in enumerate(found):
        start, end = float(history.start[j]), float(history.end[j])
        if not start < end:  # also where either is no number
            odd += 1
        elif history.offset[j] == history.offset[j + 1]:
            nodeless += 1
        elif job is None:
            single += 1
        elif start < until and end > begin:
            spans.append((start, end, job))
    for what, count in (("jobs that end before they start", odd), ("jobs without nodes", nodeless)):
        if count:
            left_out[what] = left_out.get(what, 0) + count
    if not spans:
        raise InputError(
            f"no job of {history.name} spans two leaf switches of {fabric.name} in that time",
            remedy="is the history of this fabric?",
        )
    at = _moments(spans, every, begin, until)
    state, running = _states(at, spans)
    jobs = tuple(job for _, _, job in spans)
    return Samples(at, state, jobs, running, left_out, single)


def _jobs_without_known_nodes(history: History, unknown: Mapping[str, int]) -> int:
    known = np.array([host not in unknown for host in history.hosts], np.bool_)
    job = np.repeat(np.arange(history.jobs), np.diff(history.offset))
    some = np.bincount(job[known[history.node]], minlength=history.jobs) > 0
    return int((~some & (np.diff(history.offset) > 0)).sum())


def _moments(
    spans: list[tuple[float, float, Job]], every: float | None, begin: float, until: float
) -> F64:
    if every is None:
        moments = np.array([t for start, end, _ in spans for t in (start, end)], np.float64)
        moments = np.unique(np.append(np.clip(moments, begin, until), begin))
        return moments[moments < until] if until > begin else moments[:1]
    if not every > 0 or (until - begin) / every > MOST_SAMPLES:
        raise InputError(
            f"samples every {every / 60:g} minutes over {(until - begin) / 86400:.1f} days",
            remedy=f"give --every more than 0, and at most {MOST_SAMPLES:,} samples in all",
        )
    count = max(1, int(np.ceil((until - begin) / every)))
    return np.array(begin + every * np.arange(count), np.float64)


def _states(
    at: F64, spans: list[tuple[float, float, Job]]
) -> tuple[NDArray[np.int64], tuple[tuple[int, ...], ...]]:
    """Sweeps over the moments; jobs come in the order of their start."""
    state = np.zeros(len(at), np.int64)
    states: list[tuple[int, ...]] = []
    keys: list[frozenset[bytes]] = []
    key_of = [job.key for _, _, job in spans]
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
