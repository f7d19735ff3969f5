"""Runs one engine through consecutive states: the routes that the agent would have in force at
each.

The agent's own planner computes them, so routes are checked, assigned to lanes and rerouted as they
would be installed.

A chain starts with a full computation for the state *before* its first, and the engine continues
from there as in the agent: `sar` and `sar-plus` start from the previous routes. So the numbers of
a state, and the entries that changed since the previous one, depend only on where chains begin.
With `from_scratch` every state is a full computation, as in sar-2016, Section 4.2.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sar_agent.agent.planner import Planner
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan
from sar_agent.jobs.model import JobMix
from sar_agent.quality import measure
from sar_agent.routing import Engine, Options, Routes
from sar_agent.routing.engine import Rerouting
from sar_lab.opensm_tables import lab_engine


@dataclass(frozen=True)
class StateRow:
    """The measures of one state under one engine; None where the engine does not serve it."""

    engine: str
    state: int
    jobs: int
    """The number of multi-switch jobs."""
    failed: str = ""
    """The reason why the engine does not serve this state; else empty."""
    seconds: float = 0.0
    """The time to route, check and measure; it depends on the machine, so it is not part of the
    result."""
    effective_efi_max: int | None = None
    effective_efi_mean: float | None = None
    """Mean over all live channels."""
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
    """As `job_efi_own`, with the routes of all jobs over that job's channels."""
    job_links: float | None = None
    """The number of channels that a job uses, mean over jobs."""
    entries_changed: int | None = None
    """Table entries that differ from the previous state; None for the first state."""
    virtual_lanes: int | None = None


class CachedEngine(Engine):
    """An engine whose routes do not depend on jobs; it computes them once."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.name, self.summary = engine, engine.name, engine.summary
        self._routes: Routes | None = None

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        if self._routes is None or self._routes.jobs_digest:
            self._routes = self.engine.route(fabric, mix, options)
        return self._routes


def cached_engine(engine: Engine, from_scratch: bool) -> Engine:
    """The engine itself, or one that ignores previous routes and repeats no computation."""
    return engine if isinstance(engine, Rerouting) and not from_scratch else CachedEngine(engine)


def replay_chain(
    fabric: Fabric,
    engine: str,
    objective: str,
    states: Iterable[tuple[int, JobMix]],
    first: int,
    from_scratch: bool = False,
) -> Iterator[StateRow]:
    """A row for each state from `first` on; earlier states only determine the previous routes."""
    config = Config(agent=AgentConfig.model_validate({"engine": engine, "objective": objective}))
    planner = Planner(config, cached_engine(lab_engine(engine), from_scratch))
    before: Plan | None = None
    for number, mix in states:
        began = time.perf_counter()
        try:
            plan = _next(planner, fabric, mix, before)
        except SarError as error:
            if number >= first:
                yield StateRow(engine, number, len(mix.whole_jobs), failed=str(error))
            continue
        seconds = time.perf_counter() - began
        if number >= first:
            yield _row(engine, number, plan, before, seconds)
        before = plan


def _next(planner: Planner, fabric: Fabric, mix: JobMix, before: Plan | None) -> Plan:
    """The plan after `before`; of routes that do not depend on jobs, only measures are new."""
    if before and not before.routes.jobs_digest:
        return replace(before, mix=mix, measures=measure(fabric, mix, before.routes))
    return planner.plan(1, fabric, mix, before)


def _row(engine: str, state: int, plan: Plan, before: Plan | None, seconds: float) -> StateRow:
    measures, jobs = plan.measures, plan.mix.jobs
    return StateRow(
        engine=engine,
        state=state,
        jobs=len(plan.mix.whole_jobs),
        seconds=seconds,
        effective_efi_max=measures.effective_efi_max,
        effective_efi_mean=measures.effective_efi_mean,
        lower_bound_efi_max=measures.lower_bound_efi_max,
        dark_fiber_ratio=measures.dark_fiber_ratio,
        least_dark_fiber=measures.least_dark_fiber,
        load_max=measures.load_max,
        lower_bound_load_max=measures.lower_bound_load_max,
        throughput_mean=measures.throughput_mean,
        throughput_min=measures.throughput_min,
        job_efi_own=float(plan.measures.traffic.job_efi_own.mean()) if jobs else None,
        job_efi_shared=float(plan.measures.traffic.job_efi.mean()) if jobs else None,
        job_links=float(plan.measures.traffic.job_links.mean()) if jobs else None,
        entries_changed=plan.routes.entries_changed(before.routes) if before else None,
        virtual_lanes=measures.virtual_lanes,
    )
