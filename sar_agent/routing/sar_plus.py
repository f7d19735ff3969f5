"""SAR+: tables that ignore jobs, and few exceptions for the jobs that run.

**Objective.** Collectives of the running jobs take the least time, as a share of what they take on
tables that ignore jobs (`collectives/objective.py`), with rings that meet no more than the cabling
forces, no load above what is needed, and a price for each exception.

| weight | what it buys |
|---|---|
| rings above their cut bound: first (if all fit) | a ring never waits on a full tree |
| load above `target` times the bound: second | all messages at once; the old objective |
| `LOSS` 3 for a collective that takes longer | no collective pays for another one |
| `PRICE` .01 of an exception, over jobs | few entries |

On trees that are not full, where keeping rings apart would make another collective slower than on
the template, rings are one collective among the others.

The tables are those of the template (`template.py`) but for few entries. `exceptions.py` and
`cool_channels.py` move paths that would load a channel too much: a load of 1 slows nobody, so no
exception is made for less. `collectives/` then colours the edges of rings and improves the others.
With objective `routes` that is left out: the largest effective EFI counts, as in sar-2016.

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

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.collectives.serve import Collectives
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.excepted_tables import ExceptedTables
from sar_agent.routing.exceptions import drop_unused
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.repair import carried_tables, carry_over
from sar_agent.routing.routes import Routes
from sar_agent.routing.template import Template, nearest_template, template_of, templates_of

WORTH = 1.02
"""How many times smaller the largest load must become for tables made from the template again."""

SHARED = "some hosts are in several jobs: messages of their rings share the host's cable"


class _Last(NamedTuple):
    """What is known of the last routes, to begin the next ones with."""

    mark: int
    tables: ExceptedTables


_marks = count(1)


class SarPlus:
    """Serves the collectives of running jobs by few exceptions to tables that ignore jobs."""

    name = "sar-plus"
    summary = "D-mod-k with few exceptions for running jobs: rings that do not wait, and least load"
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
            _separate_rings(tables)  # the least change
            if tables.peak() > tables.most * WORTH:
                tables.cool()
            tables.keep_one_lane()
            enough = _enough(tables, tables.most)
        else:
            tables, started = self._followed(before, template, mix, options)
            # When a job ends, loads only fall, and the bound with them.
            most = tables.most if started.any() else max(tables.most, options.target)
            _serve_changed(tables, started, max(1.0, tables.most))
            enough = _enough(tables, most)
            if tables.peak() > WORTH * enough:  # other jobs must make way
                tables.cool()
                _separate_rings(tables)
            tables.keep_one_lane()
        if tables.peak() > WORTH * enough:
            fresh = _from_templates(fabric, mix, options)
            if WORTH * fresh.peak() < tables.peak():
                tables = fresh
        return self._keep(tables)

    def _followed(
        self, before: PreviousRoutes, template: Template, mix: JobMix, options: Options
    ) -> tuple[ExceptedTables, Bool]:
        """The tables of earlier routes after jobs started and ended; bool[J]: which jobs
        started."""
        last, self._last = self._last, None  # it is about to change
        egress = before.routes.egress[0].copy()
        if (
            last
            and last.mark == before.routes.mark
            and last.tables.template is template
            and last.tables.options.objective == options.objective
        ):
            tables = replace(last.tables, egress=egress, options=options)
        else:
            tables = ExceptedTables.of(template, before.mix, options, egress)
        loads = tables.loads
        started, changed = _follow(loads, mix, egress)
        # What a failure moved stays while jobs run: the least change.
        rows = changed if mix.jobs else np.arange(len(loads.work.root), dtype=np.uint32)
        drop_unused(loads.paths, loads.work, tables.scratch(), rows, template.egress, egress)
        tables.move_paths(np.flatnonzero(started))
        return tables, started

    def _keep(self, tables: ExceptedTables) -> Routes:
        fabric, mix = tables.template.fabric, tables.loads.mix
        routes = Routes(
            engine=self.name,
            fabric_digest=fabric.digest,
            egress=tables.egress[None],
            jobs_digest=mix.digest(fabric),
            mark=next(_marks),
            remarks=(SHARED,) if len(np.unique(mix.terminal)) < len(mix.terminal) else (),
        )
        # Without the entries: `reroute` is given these with the routes that it starts from.
        self._last = _Last(routes.mark, replace(tables, egress=np.empty((0, 0), np.uint8)))
        return routes


def _from_templates(fabric: Fabric, mix: JobMix, options: Options) -> ExceptedTables:
    """Each template with exceptions for these jobs; of those that load no channel more than the
    best template itself, the tables on which collectives take least time."""
    templates = templates_of(fabric) if mix.jobs else (template_of(fabric),)
    made = [_plain(each, mix, options) for each in templates]
    ceiling = min(tables.peak() for tables in made)
    for tables in made:
        peak = tables.peak()
        tables.improve()
        tables.keep_one_lane()
        if tables.peak() > peak:
            tables.go_back(tables.loads.terminals)
    good = [tables for tables in made if tables.peak() <= ceiling]
    if not mix.jobs or options.objective == "routes":
        return min(good, key=ExceptedTables.peak)
    collectives = Collectives.of(fabric, mix)
    served = [_served(tables, collectives, ceiling) for tables in good]
    worth = [collectives.worth(tables.egress) for tables in served]
    if any(each.loses for each in worth):
        # Relief of full links cost a collective too much: templates as they are come first.
        moved = [
            tables.template for tables in made if (tables.egress != tables.template.egress).any()
        ]
        plain = [_plain(each, mix, options) for each in moved]
        served += [_served(tables, collectives, tables.peak()) for tables in plain]
        worth += [collectives.worth(tables.egress) for tables in served[len(worth) :]]
    return served[worth.index(min(worth))]


def _served(tables: ExceptedTables, collectives: Collectives, ceiling: float) -> ExceptedTables:
    """The tables with exceptions for the collectives, too, and no load above `ceiling`."""
    egress = tables.egress.copy()
    collectives.serve(tables.template, egress, max(1.0, tables.peak()), max(1.0, ceiling))
    _take_used(tables, egress)
    tables.keep_one_lane()
    return tables


def _take_used(tables: ExceptedTables, egress: U8) -> None:
    """Takes these entries, but for exceptions that no job uses any more."""
    loads, usual = tables.loads, tables.template.egress
    drop_unused(loads.paths, loads.work, tables.scratch(), loads.terminals, usual, egress)
    tables.take(egress)


def _serve_changed(tables: ExceptedTables, started: Bool, ceiling: float) -> None:
    """After jobs `started` bool[J], or ended: exceptions for the collectives of those, and none
    that is needed no more."""
    mix, options = tables.loads.mix, tables.options
    if not mix.jobs or options.objective == "routes":
        return
    fabric, template, egress = tables.template.fabric, tables.template, tables.egress.copy()
    collectives = Collectives.of(fabric, mix)
    if started.any():
        collectives.serve(template, egress, ceiling, ceiling, collectives.items_of(started))
    else:
        collectives.return_unneeded(template, egress, ceiling)
    _take_used(tables, egress)


def _separate_rings(tables: ExceptedTables) -> None:
    mix = tables.loads.mix
    if not mix.jobs or tables.options.objective == "routes":
        return
    fabric, egress = tables.template.fabric, tables.egress.copy()
    collectives = Collectives.of(fabric, mix)
    everything = np.ones(len(collectives.demand.leaf), np.bool_)
    collectives.separate(tables.template, egress, everything)
    tables.take(egress)


def _enough(tables: ExceptedTables, most: float) -> float:
    """The load that need not be lowered: `most`, or that of the best template."""
    mix = tables.loads.mix
    if not mix.jobs or tables.peak() <= WORTH * most:
        return most
    templates = templates_of(tables.template.fabric)
    return max(most, min(_plain(each, mix, tables.options).peak() for each in templates))


def _plain(template: Template, mix: JobMix, options: Options) -> ExceptedTables:
    return ExceptedTables.of(template, mix, options, template.egress.copy())


def _follow(loads: JobLoads, mix: JobMix, egress: U8) -> tuple[Bool, U32]:
    """Makes `mix` the mix of the loads. Returns bool[J], which of its jobs are new, and the
    terminals of jobs that started or ended."""
    jobs = {job.key: job for job in (*loads.mix.jobs, *mix.jobs)}
    # Counted, because several jobs may share all their nodes.
    before, after = (Counter(job.key for job in each.jobs) for each in (loads.mix, mix))
    changed = {key for key in jobs if before[key] != after[key]}
    terminals = [jobs[key].terminals for key in changed]
    touched = np.unique(np.concatenate([np.empty(0, np.int32), *terminals])).astype(np.uint32)
    loads.carry(egress, touched, -1)
    loads.use(mix)
    loads.carry(egress, touched)
    return np.array([job.key in changed for job in mix.jobs], np.bool_), touched
