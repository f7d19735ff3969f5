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

from collections import Counter
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.excepted_tables import ExceptedTables
from sar_agent.routing.exceptions import could_go_back, drop_unused
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.repair import carried_tables, carry_over
from sar_agent.routing.routes import Routes
from sar_agent.routing.template import Template, nearest_template, template_of, templates_of
from sar_agent.routing.tree_moves import BACK, EPSILON

WORTH = 1.02
"""How many times smaller the largest load must become for tables made from the template again."""
NEARLY_FULL = 0.75


class _Last(NamedTuple):
    """What is known of the last routes, to begin the next ones with."""

    mark: int
    tables: ExceptedTables


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
        return self._keep(_from_templates(fabric, mix, options))

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """Routes that begin with the exceptions of `before`. On another fabric all entries stay
        that still lead along its paths; else a job that starts or ends changes its own entries and
        those that make way."""
        old = carry_over(before.fabric, fabric, before.routes.egress[0])
        template = nearest_template(fabric, old) if mix.jobs else template_of(fabric)
        if before.fabric.digest != fabric.digest:
            egress = carried_tables(fabric, old, template.cache, template.egress)
            tables = ExceptedTables.of(template, mix, options, egress)
            tables.cool()
            tables.keep_one_lane()
            enough = tables.most  # the least change, unless a template itself would be better
            if tables.peak() > WORTH * enough:
                plain = [_plain(each, mix, options).peak() for each in templates_of(fabric)]
                enough = max(enough, min(plain))
        else:
            tables, started = self._followed(before, template, mix, options)
            # When a job ends, loads only fall, and the bound with them.
            enough = tables.most if len(started) else max(tables.most, options.target)
            if len(started) or tables.peak() > WORTH * enough:
                tables.cool()
            weighed = len(started) and options.objective == "load" and not tables.large
            if weighed:
                usual = _least_contention(tables, templates_of(fabric))
                tables.weigh_phases(usual, max(tables.peak(), WORTH * enough))
            tables.keep_one_lane()
            if weighed:
                own = ExceptedTables.of(template, mix, options, tables.egress.copy())
                own.own_limits = True
                own.move_paths(started)
                own.keep_one_lane()
                tables = own if own.faster_than(tables) else tables
        if tables.peak() > WORTH * enough:
            fresh = _from_templates(fabric, mix, options)
            if WORTH * fresh.peak() < tables.peak():
                tables = fresh
        return self._keep(tables)

    def _followed(
        self, before: PreviousRoutes, template: Template, mix: JobMix, options: Options
    ) -> tuple[ExceptedTables, NDArray[np.intp]]:
        """The tables of earlier routes after jobs started and ended; which jobs started."""
        last, self._last = self._last, None  # it is about to change
        egress = before.routes.egress[0].copy()
        if (
            last
            and last.mark == before.routes.mark
            and last.tables.template is template
            and last.tables.options.objective == options.objective
        ):
            tables = replace(last.tables, egress=egress, options=options, own_limits=False)
        else:
            tables = ExceptedTables.of(template, before.mix, options, egress)
        loads, parts, scratch = tables.loads, (template.egress, egress), tables.scratch()
        load = loads.paths.load.copy()
        started, changed = _follow(loads, mix, egress)
        # What a failure moved stays while jobs run: the least change.
        rows = changed if mix.jobs else np.arange(len(loads.work.root), dtype=np.uint32)
        drop_unused(loads.paths, loads.work, scratch, rows, *parts)
        tables.move_paths(started)
        # Channels that were so full that the template's paths over them may have been left.
        freed = (load > loads.paths.load + EPSILON) & (load > NEARLY_FULL * tables.most)
        if freed.any():
            back = could_go_back(loads.paths, loads.work, freed, *parts)
            tables.move_paths(np.flatnonzero(back), BACK)
        return tables, started

    def _keep(self, tables: ExceptedTables) -> Routes:
        fabric = tables.template.fabric
        routes = Routes(
            engine=self.name,
            fabric_digest=fabric.digest,
            egress=tables.egress[None],
            jobs_digest=tables.loads.mix.digest(fabric),
            mark=next(_marks),
        )
        # Without the entries: `reroute` is given these with the routes that it starts from.
        self._last = _Last(routes.mark, replace(tables, egress=np.empty((0, 0), np.uint8)))
        return routes


def _from_templates(fabric: Fabric, mix: JobMix, options: Options) -> ExceptedTables:
    """Tables with exceptions for these jobs, with channels' own limits if jobs are faster so."""
    made = _best_made(fabric, mix, options, False)
    if mix.jobs and options.objective == "load" and not made.large:
        own = _best_made(fabric, mix, options, True)
        return own if own.faster_than(made) else made
    return made


def _best_made(fabric: Fabric, mix: JobMix, options: Options, own_limits: bool) -> ExceptedTables:
    """Each template with exceptions for these jobs; of those that load no channel more than the
    best template itself, the tables on which jobs take least time."""
    templates = templates_of(fabric) if mix.jobs else (template_of(fabric),)
    made = [replace(_plain(each, mix, options), own_limits=own_limits) for each in templates]
    ceiling = min(tables.peak() for tables in made)
    phased = bool(mix.jobs) and options.objective == "load"
    usual = _least_contention(made[0], templates) if phased else np.empty(0)
    for tables in made:
        peak = tables.peak()
        tables.improve()
        tables.keep_one_lane()
        if tables.peak() > peak:
            tables.go_back(tables.loads.terminals)
        elif phased:
            tables.weigh_phases(usual, peak)
    good = [tables for tables in made if tables.peak() <= ceiling]
    if len(good) == 1 or not phased:
        return min(good, key=ExceptedTables.peak)
    return min(good, key=lambda tables: tables.cost(tables.contention(), usual))


def _plain(template: Template, mix: JobMix, options: Options) -> ExceptedTables:
    return ExceptedTables.of(template, mix, options, template.egress.copy())


def _least_contention(tables: ExceptedTables, templates: tuple[Template, ...]) -> F64:
    """float64[J]: the phase contention of each job on the best template for it."""
    least: F64 = np.stack([tables.contention(each.egress) for each in templates]).min(axis=0)
    return least


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
