"""SAR+: tables that ignore jobs, and few exceptions for the jobs that run.

The objective is sar-2016's (Algorithm 1): routes inside jobs are balanced. The tables are those of
the template (`template.py`) but for few entries: `exceptions.py` moves the paths that would load a
channel above `target` times the bound, and those whose messages meet in a phase; `cool_channels.py`
relieves what is left. A load of 1 slows nobody, so no exception is made for less.

The tables depend on the fabric, the jobs and the exceptions in force. A job that starts changes
entries of its own paths and those that must make way; exceptions that are needed no more go back to
the template with the next plan; without jobs the tables are the template.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.cool_channels import cool
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.exceptions import could_go_back, drop_unused, except_paths
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.lane_guard import closing_loops
from sar_agent.routing.phase_contention import phase_contention
from sar_agent.routing.repair import carried_tables, carry_over
from sar_agent.routing.routes import Routes
from sar_agent.routing.template import (
    Template,
    loads_on,
    nearest_template,
    template_of,
    templates_of,
)
from sar_agent.routing.tree_moves import ANY, BACK, EPSILON, Scratch, scratch_for

WORTH = 1.02
"""How many times smaller the largest load must become for tables made from the template again."""
LARGE = 4096
"""Terminals. Where jobs have more, they are looked at once instead of twice, which leaves an eighth
more entries and takes half the time."""
NEARLY_FULL = 0.75
MOMENTS = 32
"""Moments at which phases are looked at, up to 4,096 terminals; then fewer."""
ALIKE = 1.01
"""Times the phase contention of the template: so much makes no difference."""
TRIED = 8
"""The most jobs whose exceptions are weighed against their phases."""
EXCEPTION = 0.5
"""The price of an exception, in messages that meet. With 1, six of the 40 placements of sar-fig8
were slower than on stock fat-tree tables, with half none."""


class _Last(NamedTuple):
    """What is known of the last routes, to begin the next ones with."""

    mark: int
    template: Template
    loads: JobLoads


class _Made(NamedTuple):
    """A template's tables with exceptions."""

    template: Template
    loads: JobLoads
    egress: U8
    """uint8[T + S, S]"""
    usual: float
    """The largest load of the template itself."""


_marks = count(1)


class SarPlus:
    """Balances the load of all jobs doing all-to-all at once, and the phases of each."""

    name = "sar-plus"
    summary = (
        "D-mod-k with few exceptions for running jobs: least load, and phases without contention"
    )
    knows_jobs = True

    def __init__(self) -> None:
        self._last: _Last | None = None

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        began = time.perf_counter()
        templates = templates_of(fabric) if mix.jobs else (template_of(fabric),)
        made = [_excepted(template, mix, options) for template in templates]
        good = [each for each in made if each.loads.peak() <= made[0].usual]
        best = min(good, key=_cost) if len(good) > 1 else made[0]
        return self._keep(best.template, best.loads, best.egress, began)

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """Routes that begin with the exceptions of `before`. On another fabric all entries stay
        that still lead along its paths; else a job that starts or ends changes its own entries and
        those that make way."""
        began = time.perf_counter()
        old = before.routes.egress[0]
        template = nearest_template(fabric, carry_over(before.fabric, fabric, old))
        if not mix.jobs:
            template = template_of(fabric)
        if before.fabric.digest != fabric.digest:
            egress = carried_tables(before.fabric, fabric, old, template.cache, template.egress)
            loads = loads_on(template, mix, options.objective, egress)
            most = _most(loads, options)
            _cool(template, loads, egress, most)
            _keep_one_lane(template, loads, egress)
            usual = most  # the least change, unless the template itself would be better
            if loads.peak() > WORTH * most:
                made = [loads_on(t, mix, options.objective, t.egress) for t in templates_of(fabric)]
                usual = max(most, min(each.peak() for each in made))
            if loads.peak() > WORTH * usual:
                return replace(
                    self.route(fabric, mix, options), seconds=time.perf_counter() - began
                )
            return self._keep(template, loads, egress, began)
        egress = old.copy()
        loads = self._followed(before, template, mix, options, egress)
        most = _most(loads, options)
        _cool(template, loads, egress, most)
        if options.objective == "load" and len(mix.terminal) <= LARGE:
            _weigh_phases(template, loads, egress)
        _keep_one_lane(template, loads, egress)
        if loads.peak() > WORTH * most:
            fresh = self.route(fabric, mix, options)
            if self._last and WORTH * self._last.loads.peak() < loads.peak():
                return replace(fresh, seconds=time.perf_counter() - began)
        return self._keep(template, loads, egress, began)

    def _followed(
        self, made: PreviousRoutes, template: Template, mix: JobMix, options: Options, egress: U8
    ) -> JobLoads:
        """The loads after jobs started and ended, which changed entries of `egress`, the tables of
        earlier routes."""
        last, self._last = self._last, None  # it is about to change
        if (
            last
            and last.mark == made.routes.mark
            and last.template is template
            and last.loads.objective == options.objective
        ):
            loads = last.loads
        else:
            loads = loads_on(template, made.mix, options.objective, egress)
        parts, load = (template.egress, egress), loads.paths.load.copy()
        started, changed = _follow(loads, mix, egress)
        # What a failure moved stays while jobs run: the least change.
        rows = changed if mix.jobs else np.arange(len(loads.work.root), dtype=np.uint32)
        drop_unused(loads.paths, loads.work, _scratch(loads), rows, *parts)
        most = _most(loads, options)
        _except(template, loads, egress, most, started)
        # Channels that were so full that the template's paths over them may have been left.
        freed = (load > loads.paths.load + EPSILON) & (load > NEARLY_FULL * most)
        if freed.any():
            back = could_go_back(loads.paths, loads.work, freed, *parts)
            _except(template, loads, egress, most, np.flatnonzero(back), BACK)
        return loads

    def _keep(self, template: Template, loads: JobLoads, egress: U8, began: float) -> Routes:
        fabric = template.fabric
        routes = Routes(
            engine=self.name,
            fabric_digest=fabric.digest,
            egress=egress[None],
            jobs_digest=loads.mix.digest(fabric),
            seconds=time.perf_counter() - began,
            mark=next(_marks),
        )
        self._last = _Last(routes.mark, template, loads)
        return routes


def _excepted(template: Template, mix: JobMix, options: Options) -> _Made:
    """The template's tables with exceptions for these jobs."""
    egress = template.egress.copy()
    loads = loads_on(template, mix, options.objective, egress)
    most, peak = _most(loads, options), loads.peak()
    for _ in range(1 if len(mix.terminal) > LARGE else 2):
        if not _except(template, loads, egress, most, range(len(mix.jobs))):
            break
    _cool(template, loads, egress, most)
    _keep_one_lane(template, loads, egress)
    if loads.peak() > peak:
        _go_back(template, loads, egress, loads.terminals)
    elif loads.objective == "load":
        _weigh_phases(template, loads, egress)
    return _Made(template, loads, egress, peak)


def _cost(made: _Made) -> float:
    """How long jobs take, all at once times one at a time; with objective `routes`, the most
    routes."""
    if made.loads.objective == "routes":
        return made.loads.peak()
    return made.loads.slowdown(made.egress) * float(_contention(made.loads, made.egress).mean())


def _most(loads: JobLoads, options: Options) -> float:
    """The load up to which no exception is made."""
    most = options.target * loads.least_peak()
    return max(1.0, most) if loads.objective == "load" else most


def _follow(loads: JobLoads, mix: JobMix, egress: U8) -> tuple[NDArray[np.intp], U32]:
    """Makes `mix` the mix of the loads; returns which of its jobs are new, and the terminals of
    jobs that started or ended."""
    jobs = {job.key: job for job in (*loads.mix.jobs, *mix.jobs)}
    # Counted, because several jobs may share all their nodes.
    before, after = (Counter(job.key for job in each.jobs) for each in (loads.mix, mix))
    changed = {key for key in jobs if before[key] != after[key]}
    terminals = [jobs[key].terminals for key in changed]
    touched = np.unique(np.concatenate([np.empty(0, np.int32), *terminals])).astype(np.uint32)
    loads.carry(egress, touched, -1)
    loads.use(mix)
    loads.carry(egress, touched)
    return np.flatnonzero([job.key in changed for job in mix.jobs]), touched


def _except(
    template: Template,
    loads: JobLoads,
    egress: U8,
    most: float,
    jobs: Sequence[int] | NDArray[np.intp],
    farthest: int = ANY,
) -> int:
    """Moves paths of these jobs, those with the heaviest routes first; how many."""
    mix, work = loads.mix, loads.work
    some = np.asarray(jobs, np.intp)
    if not len(some):
        return 0
    rank = np.argsort(np.argsort(_keys(loads)))
    # With objective `routes` all routes weigh the same, and large jobs have most of them.
    sizes = np.diff(mix.offset) * (1 if loads.objective == "load" else -1)
    keys = rank[some], sizes[some], -work.unit[some]
    order = some[np.lexsort(keys)].astype(np.uint32)
    parts = template.egress, egress
    return except_paths(
        loads.paths,
        work,
        _scratch(loads),
        order,
        most,
        EXCEPTION,
        farthest,
        *parts,
    )


def _keys(loads: JobLoads) -> list[bytes]:
    """What names each job, whatever the order of its fabric: its port GUIDs."""
    guid = loads.fabric.terminal_guid
    return [np.sort(guid[job.terminals]).byteswap().tobytes() for job in loads.mix.jobs]


def _cool(template: Template, loads: JobLoads, egress: U8, most: float) -> None:
    source = loads.fabric.channel_source.astype(np.uint32)
    parts = loads.paths, loads.work, _scratch(loads), source, loads.terminals
    cool(*parts, most, EXCEPTION, template.egress, egress)


def _go_back(template: Template, loads: JobLoads, egress: U8, terminals: U32) -> None:
    """The entries to these terminals become those of the template."""
    loads.carry(egress, terminals, -1)
    egress[terminals] = template.egress[terminals]
    loads.carry(egress, terminals)


def _keep_one_lane(template: Template, loads: JobLoads, egress: U8) -> None:
    """Entries that would need a second lane, where the template needs none, return to it."""
    if template.may_loop:
        closing = closing_loops(template.fabric, template.egress, egress)
        _go_back(template, loads, egress, closing)


def _weigh_phases(template: Template, loads: JobLoads, egress: U8) -> None:
    """Where one message at a time costs more than on the template, a job loses its exceptions if
    that gains more in phases than all messages at once lose."""
    mix = loads.mix
    if not mix.jobs:
        return
    usual, now = _contention(loads, template.egress), _contention(loads, egress)
    worse = np.lexsort((np.argsort(np.argsort(_keys(loads))), -(now / usual)))
    cost = loads.slowdown(egress) * float(now.mean())
    for j in worse[:TRIED]:
        if now.mean() <= ALIKE * usual.mean() or now[j] <= ALIKE * usual[j]:
            return
        terminals = mix.jobs[j].terminals.astype(np.uint32)
        kept = egress[terminals]
        _go_back(template, loads, egress, terminals)
        then = _contention(loads, egress)
        if loads.slowdown(egress) * then.mean() < cost:
            cost, now = loads.slowdown(egress) * float(then.mean()), then
            continue
        loads.carry(egress, terminals, -1)
        egress[terminals] = kept
        loads.carry(egress, terminals)


def _contention(loads: JobLoads, tables: U8) -> F64:
    """float64[J]: the phase contention of each job."""
    moments = max(MOMENTS // 4, min(MOMENTS, MOMENTS * 4096 // max(1, len(loads.mix.terminal))))
    return phase_contention(loads.fabric, loads.mix, tables, moments)


def _scratch(loads: JobLoads) -> Scratch:
    return scratch_for(loads.fabric.switches, loads.fabric.channels, np.diff(loads.mix.offset))
