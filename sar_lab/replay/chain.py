"""One engine through consecutive states: what the agent would have in force at each.

The agent's own planner does it, so routes are checked, laid in lanes and rerouted as they would be
installed. What differs: nothing is tended in quiet time, since what a clock decides is not the same
twice.

A chain starts from a full computation at the state *before* its first, and the engine goes on from
there as it does in the agent: `sar` and `sar-plus` start from the routes before. So each state's
numbers, also the entries that changed since the state before, depend on where chains begin, and on
nothing else. With `anew` every state is a full computation, as in sar-2016, Section 4.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from sar_agent.agent.planner import Planner
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan
from sar_agent.jobs.model import JobMix
from sar_agent.routing import Engine, Options, Routes, load_engine
from sar_agent.routing.engine import Rerouting


@dataclass(frozen=True)
class StateRow:
    """One state under one engine; numbers are None where the engine does not serve it."""

    engine: str
    state: int
    jobs: int
    """Multi-switch jobs."""
    failed: str = ""
    """Why it does not."""
    seconds: float = 0.0
    """To route, check and measure it; on this machine, so not part of the result."""
    effective_efi_max: int | None = None
    effective_efi_mean: float | None = None
    """Over all live channels."""
    lower_bound_efi_max: int | None = None
    dark_fiber_ratio: float | None = None
    least_dark_fiber: float | None = None
    load_max: float | None = None
    lower_bound_load_max: float | None = None
    throughput_mean: float | None = None
    throughput_min: float | None = None
    job_efi_own: float | None = None
    """gamma_max(j), mean over jobs: a job's own routes over the channel with most of them
    (sar-2016, Section 4.2.1: "the link with the most intra-job routes crossing it"). None without
    jobs."""
    job_efi_shared: float | None = None
    """The same with the routes of all jobs over that job's channels."""
    job_links: float | None = None
    """Channels a job uses, mean over jobs."""
    entries_changed: int | None = None
    """Since the state before; None for the first state of all."""
    virtual_lanes: int | None = None


class CachedEngine(Engine):
    """An engine whose routes no job changes, asked once."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.name, self.summary = engine, engine.name, engine.summary
        self._routes: Routes | None = None

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        if self._routes is None or self._routes.jobs_digest:
            self._routes = self.engine.route(fabric, mix, options)
        return self._routes


def cached_engine(engine: Engine, anew: bool) -> Engine:
    """The engine, or one that does not go on from routes before, nor look twice without need."""
    return engine if isinstance(engine, Rerouting) and not anew else CachedEngine(engine)


def replay_chain(
    fabric: Fabric,
    engine: str,
    objective: str,
    states: Iterable[tuple[int, JobMix]],
    first: int,
    anew: bool = False,
) -> Iterator[StateRow]:
    """A row for each state from number `first` on; those before it only lead there."""
    config = Config(agent=AgentConfig.model_validate({"engine": engine, "objective": objective}))
    planner = Planner(config, cached_engine(load_engine(engine), anew))
    before: Plan | None = None
    for number, mix in states:
        began = time.perf_counter()
        try:
            plan = planner.plan(1, fabric, mix)
        except SarError as error:
            if number >= first:
                yield StateRow(engine, number, len(mix.jobs), failed=str(error))
            continue
        seconds = time.perf_counter() - began
        if number >= first:
            yield _row(engine, number, plan, before, seconds)
        before = plan


def _row(engine: str, state: int, plan: Plan, before: Plan | None, seconds: float) -> StateRow:
    found, jobs = plan.measures, plan.mix.jobs
    return StateRow(
        engine=engine,
        state=state,
        jobs=len(jobs),
        seconds=seconds,
        effective_efi_max=found.effective_efi_max,
        effective_efi_mean=found.effective_efi_mean,
        lower_bound_efi_max=found.lower_bound_efi_max,
        dark_fiber_ratio=found.dark_fiber_ratio,
        least_dark_fiber=found.least_dark_fiber,
        load_max=found.load_max,
        lower_bound_load_max=found.lower_bound_load_max,
        throughput_mean=found.throughput_mean,
        throughput_min=found.throughput_min,
        job_efi_own=_own_efi(plan) if jobs else None,
        job_efi_shared=float(plan.traffic.job_efi.mean()) if jobs else None,
        job_links=float(plan.traffic.job_links.mean()) if jobs else None,
        entries_changed=plan.routes.entries_changed(before.routes) if before else None,
        virtual_lanes=found.virtual_lanes,
    )


def _own_efi(plan: Plan) -> float:
    lists = plan.traffic.lists
    # Every multi-switch job uses a channel, so no list is empty.
    most = np.maximum.reduceat(lists.routes[: lists.offset[-1]], lists.offset[:-1])
    return float(most.mean())
