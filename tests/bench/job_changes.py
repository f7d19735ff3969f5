"""The cost of a new plan when a job starts or ends, and the routes after many such changes.

The agent's own planner makes each plan from the previous one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import fmean, median
from typing import Any

from sar_agent.agent.planner import Planner
from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.util.stages import record_stages
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.queue import Queue
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal
from tests.bench.timing import Times

CHANGES, LOOK = 200, 20
"""The number of changes, and the interval after which all routes are recomputed for comparison."""
WARM = 10
"""Changes before the measured ones; they load the kernels."""
STAGES = {
    "route": "routes",
    "check": "check",
    "senders": "hosts not known",
    "certificate": "certificate",
    "measure": "measures, beyond the proof",
}
"""Stage → its row. They follow one another."""
MEDIAN, WORST, CHANGED, WORSE = 60, 150, 10, 1.02
"""Milliseconds to the plan, per cent of the entries, and the load's ratio."""


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(name, kept(f"changes {name}", lambda n=name: _measure(n)))


class StageTimes(defaultdict[str, Times]):
    """The times of each stage; `record_stages` calls it."""

    def __init__(self) -> None:
        super().__init__(Times)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        with self[stage].one():
            yield


def _measure(name: str) -> dict[str, Any]:
    """Seconds and changed shares of each change; at every look the quality of the present and of
    recomputed routes."""
    fabric = fabric_of(name)
    queue = Queue(fabric, 1)
    planner = Planner(Config(), load_engine("sar-plus"))
    plan = planner.plan(1, fabric, queue.mix)
    times: dict[str, list[float]] = {stage: [] for stage in STAGES}
    changed, looks, processor = [], [], []
    for done, mix in enumerate(islice(queue.changes(), WARM + CHANGES), 1 - WARM):
        stages = StageTimes()
        with record_stages(stages):
            before, plan = plan, planner.plan(1, fabric, mix, plan)
        for stage, each in times.items():  # a change does not need every stage
            each.append(sum(stages[stage]))
        processor.append(sum(sum(stages[stage].cpu) for stage in STAGES))
        changed.append(_changed(before, plan))
        if done > 0 and done % LOOK == 0:
            looks.append([_quality(plan), _quality(_recomputed(fabric, mix))])
    return {
        "times": {stage: each[WARM:] for stage, each in times.items()},
        "processor": processor[WARM:],
        "changed": changed[WARM:],
        "looks": looks,
    }


def _changed(before: Plan, plan: Plan) -> float:
    return plan.routes.entries_changed(before.routes) / plan.routes.egress.size


def _recomputed(fabric: Fabric, mix: JobMix) -> Plan:
    return make_plan(1, fabric, mix, load_engine("sar-plus").route(fabric, mix, Options()))


def _quality(plan: Plan) -> tuple[float, float, float]:
    found = plan.measures
    return found.load_max, found.throughput_mean, found.throughput_min


def _table(name: str, found: dict[str, Any]) -> Table:
    stages = [found["times"][stage] for stage in STAGES]
    whole = [sum(parts) for parts in zip(*stages, strict=True)]
    table = Table(
        f"A job starts or ends: {size_of(fabric_of(name))}",
        ("", "median", "mean", "worst"),
        f"`{name}`, {CHANGES} random changes, one after the other, from `mix:1` on (85 % of the "
        "hosts busy, jobs of 2 to 64 hosts), `sar-plus`; the agent's planner makes each from the "
        "previous plan. A plan contains checked routes with their measures, which a second "
        "processor takes beside the proof: what they take longer is counted. Quality: the present "
        f"routes compared with a full recomputation for the same jobs, every {LOOK} changes.",
    )
    for what, times in zip(STAGES.values(), stages, strict=True):
        _add(table, f"{what}, ms", times, 1e3, ".1f")
    _add(table, "total, up to the plan, ms", whole, 1e3, ".1f")
    _add(table, "CPU time of all threads, ms", found["processor"], 1e3, ".1f")
    _add(table, "entries changed, %", found["changed"], 100, ".2f")
    load, mean, worst = ([now[i] / full[i] for now, full in found["looks"]] for i in range(3))
    _add(table, "largest load / recomputed", load, 1, ".3f")
    table.add("mean throughput / recomputed", *(f"{f(mean):.3f}" for f in (median, fmean, min)))
    table.add(
        "worst job's throughput / recomputed", *(f"{f(worst):.3f}" for f in (median, fmean, min))
    )
    table.goals = [
        goal("up to the plan, median", median(whole) * 1e3, MEDIAN, "ms"),
        goal("up to the plan, worst", max(whole) * 1e3, WORST, "ms"),
        goal("entries changed, mean", 100 * fmean(found["changed"]), CHANGED, "%"),
        goal("entries changed, worst", 100 * max(found["changed"]), CHANGED, "%"),
        goal(
            f"largest load / recomputed after {CHANGES} changes",
            load[-1],
            WORSE,
            "",
        ),
    ]
    return table


def _add(table: Table, what: str, values: list[float], scale: float, form: str) -> None:
    table.add(what, *(f"{f(values) * scale:{form}}" for f in (median, fmean, max)))
