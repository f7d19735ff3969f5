"""Runs every engine on the site's data: routes, checks, measures, and the cost of an
installation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sar_agent.check import Verdict, check_routes
from sar_agent.config.model import AgentConfig
from sar_agent.demand.collectives import AT_ONCE, PAIRWISE
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import Bool
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures, measure
from sar_agent.quality.bounds import Bounds, bounds_of
from sar_agent.quality.measures import mean_over_jobs
from sar_agent.routing import Options, knows_jobs, load_engine
from sar_agent.routing.before import ASKED, assumed_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import Routes
from sar_lab.assess.compile_ahead import compile_parts
from sar_lab.assess.host_ports import port_load
from sar_lab.fluid import PATTERNS, TooLong, job_times

ENGINES = ("minhop", "updn", "ftree", "dfsssp", "sar", "sar-plus")
TODAY = "today"
MOST_PAIRS = 3_000_000
"""The largest number of terminal pairs in jobs whose traffic is simulated: about 1 GB of memory."""


@dataclass(frozen=True, eq=False)
class RatedRoutes:
    """One set of routes with its verdict and measures."""

    name: str
    """The engine, or `today` for the given tables."""
    routes: Routes
    verdict: Verdict
    measures: Measures
    live: Bool
    """bool[C]: the channels that are up."""
    ports: tuple[float, ...]
    """`port_load` of each job."""
    seconds: float = 0.0
    """How long the engine took; 0 for given tables."""
    entries_changed: int | None = None
    """Table entries that differ from the installed (or assumed) routes."""
    switches_changed: int | None = None
    simulated: tuple[float, ...] | None = None
    """Each job's time for an all-to-all while all jobs do one, in multiples of its time alone; None
    where it was not simulated."""
    simulated_phases: tuple[float, ...] | None = None
    """The same with one message at a time."""

    @property
    def load_time(self) -> float:
        """Mean time that follows from the fullest links, simulated or not: it compares engines."""
        return replace(self, simulated=None).time

    @property
    def contention_time(self) -> float:
        """Mean time that follows from phase contention, simulated or not."""
        return replace(self, simulated_phases=None).phase_time

    @property
    def times(self) -> tuple[float, ...]:
        """Each job's time with all messages at once: simulated, or from the fullest link on its
        routes, which is slightly more."""
        if self.simulated is not None:
            return self.simulated
        rows = zip(self.measures.jobs_detail, self.ports, strict=True)
        return tuple(max(1.0 / job.throughput, port) for job, port in rows)

    @property
    def phase_times(self) -> tuple[float, ...]:
        """Each job's time with one message at a time: simulated, or its phase contention."""
        if self.simulated_phases is not None:
            return self.simulated_phases
        contention = self.measures.phase_contention.tolist()
        return tuple(map(max, contention, self.ports))

    def job_times(self, collective: str) -> tuple[float, ...]:
        """Each job's time in a collective, a key of `COLLECTIVES`, while all jobs run it."""
        if collective == AT_ONCE:
            return self.times
        if collective == PAIRWISE:
            return self.phase_times
        contention = self.measures.contention[collective].tolist()
        return tuple(map(max, contention, self.ports))

    def mean_time(self, collective: str) -> float:
        """The mean over jobs."""
        return mean_over_jobs(self.job_times(collective))

    @property
    def time(self) -> float:
        """The mean over jobs, with all messages at once."""
        return self.mean_time(AT_ONCE)

    @property
    def phase_time(self) -> float:
        """The same with one message at a time."""
        return self.mean_time(PAIRWISE)

    def json(self) -> dict[str, Any]:
        return {
            "engine": self.name,
            "seconds": self.seconds,
            "check_passed": self.verdict.passed,
            "problems": list(self.verdict.problems),
            "unreachable_pairs": self.verdict.unreachable_pairs,
            "needs_host_levels": self.routes.needs_host_levels,
            "remarks": list(self.routes.remarks),
            "entries": self.routes.egress[0].size,
            "entries_changed": self.entries_changed,
            "switches_changed": self.switches_changed,
            "load_time": self.load_time,
            "time": self.time,
            "time_by": "load" if self.simulated is None else "simulation",
            "contention_time": self.contention_time,
            "phase_time": self.phase_time,
            "phase_time_by": "contention" if self.simulated_phases is None else "simulation",
            "efi_distribution": self.efi_distribution,
            **self.measures.json(),
        }

    @property
    def efi_distribution(self) -> list[tuple[int, int]]:
        """(effective EFI, how many live channels have it), ascending."""
        values, counts = np.unique(self.measures.channel_efi[self.live], return_counts=True)
        return list(zip(values.tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Ratings:
    """All rated routes. `before` are the installed ones, or else those that usually are."""

    before: RatedRoutes
    engines: tuple[RatedRoutes, ...]
    unserved: tuple[tuple[str, str], ...]
    """(engine, the reason why it does not serve this fabric)."""
    why: str
    """Why `before` are those assumed; empty where tables were given."""
    after: RatedRoutes | None
    """The best job-aware engine whose routes passed the checks."""
    oblivious: RatedRoutes | None
    """The best engine that ignores jobs and whose routes passed the checks."""

    @property
    def assumed(self) -> bool:
        """Whether no tables were given."""
        return self.before.name != TODAY


def rate_all(
    fabric: Fabric,
    mix: JobMix,
    today: Routes | None,
    names: Sequence[str] = ENGINES,
    *,
    say: Callable[[str], None] = lambda _: None,
) -> Ratings:
    """The ratings without a simulation. Raises `Unserved` where no engine serves the fabric, and no
    tables were given."""
    rated: list[RatedRoutes] = []
    unserved: list[tuple[str, str]] = []

    def rate(name: str) -> RatedRoutes:
        say(f"computing the routes of {name}")
        routes, seconds = _route(name, fabric, mix)
        return replace(_rate(name, fabric, mix, routes, bounds.result()), seconds=seconds)

    with workers() as pool:
        bounds = pool.submit(_bounds, fabric, mix)
        # OpenSM takes seconds to answer: it is asked first, beside the engines.
        asked = None if today else pool.submit(assumed_engine, fabric)
        ratings = {name: pool.submit(rate, name) for name in dict.fromkeys(names)}
        for name, rating in ratings.items():
            try:
                rated.append(rating.result())
            except SarError as error:
                unserved.append((name, str(error)))
        limits = bounds.result()
        name, why = asked.result() if asked else ("", "")
        if not rated and not today and unserved:
            raise SarError(f"no engine serves {fabric.name}: {unserved[0][1]}")
        if name and name not in ratings:
            rated.insert(0, rate(name))
    if today:
        before = _rate(TODAY, fabric, mix, today, limits)
    else:
        before = next(r for r in rated if r.name == name)
    passed = [(r, knows_jobs(load_engine(r.name))) for r in rated if r.verdict.passed]
    aware, plain = ([r for r, knows in passed if knows is wanted] for wanted in (True, False))
    default = AgentConfig().engine
    after = min(aware, key=lambda r: (round(r.time, 3), r.name != default), default=None)
    oblivious = min(plain, key=lambda r: r.time, default=None)
    rated = [_with_cost(r, before.routes) for r in rated]
    after = after and next(r for r in rated if r.name == after.name)
    return Ratings(before, tuple(rated), tuple(unserved), why, after, oblivious)


def simulate(
    fabric: Fabric, mix: JobMix, ratings: Ratings, stop_at: float, say: Callable[[str], None]
) -> Ratings | None:
    """The ratings with the simulated times of before and after. None where there is nothing to
    simulate, it would take too much memory, or the clock (`time.monotonic`) passes `stop_at`."""
    before, after = ratings.before, ratings.after
    pairs = sum(len(job.terminals) * (len(job.terminals) - 1) for job in mix.jobs)
    if after is None or before.verdict.unreachable_pairs or not 0 < pairs <= MOST_PAIRS:
        return None
    say("simulating the jobs' traffic")
    compile_parts(("simulate",))
    sides = [before.routes, after.routes]
    times: list[tuple[float, ...]] = []
    with workers() as pool:
        runs = [
            pool.submit(job_times, fabric, mix, routes, PATTERNS[name], stop_at)
            for name in ("alltoall", "shift")
            for routes in sides
        ]
        try:
            for run in runs:
                times.append(tuple(run.result().time.tolist()))
                say(f"simulating the jobs' traffic: {len(times)} of {len(runs)} done")
        except TooLong:
            return None
    timed = {
        rated.name: replace(rated, simulated=times[k], simulated_phases=times[k + 2])
        for k, rated in enumerate((before, after))
    }
    engines = tuple(timed.get(rated.name, rated) for rated in ratings.engines)
    return replace(ratings, before=timed[before.name], after=timed[after.name], engines=engines)


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """A thread for each processor. They begin work in the order in which it is given to them; when
    the block ends, what has not begun is dropped."""
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _bounds(fabric: Fabric, mix: JobMix) -> Bounds:
    compile_parts(("measures",))  # so that compiling takes nothing of its second
    return bounds_of(fabric, mix, rounds=64, seconds=1.0)


def _route(name: str, fabric: Fabric, mix: JobMix) -> tuple[Routes, float]:
    """The engine's routes, and seconds of the processor, as others compute at the same time."""
    if name != ASKED:  # which would ask OpenSM
        compile_parts((name,))  # so that they are the engine's alone
    began = time.thread_time()
    routes = routed(load_engine(name), fabric, mix, Options())
    return routes, time.thread_time() - began


def _rate(name: str, fabric: Fabric, mix: JobMix, routes: Routes, bounds: Bounds) -> RatedRoutes:
    measures = measure(fabric, mix, routes, bounds=bounds)
    ports = tuple(mix.largest(port_load(fabric, mix)).tolist())
    return RatedRoutes(
        name, routes, check_routes(fabric, routes), measures, fabric.channel_up, ports
    )


def _with_cost(rated: RatedRoutes, before: Routes) -> RatedRoutes:
    if rated.routes.egress.shape != before.egress.shape:
        old, new = before.egress[:1], rated.routes.egress[:1]
    else:
        old, new = before.egress, rated.routes.egress
    differs = old != new
    return replace(
        rated,
        entries_changed=int(np.count_nonzero(differs)),
        switches_changed=int(np.count_nonzero(differs.any(axis=(0, 1)))),
    )
