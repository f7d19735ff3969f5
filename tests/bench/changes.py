"""What it costs when a job starts or ends, and what becomes of the routes after many such changes.

Plans are made by the agent's own planner, from the plan before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import fmean, median
from typing import Any

from sar_agent.agent.planner import Planner
from sar_agent.config.model import AgentConfig, Config
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from tests.bench.fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.kept import Kept
from tests.bench.queue import Queue
from tests.bench.table import Table, goal
from tests.bench.timing import Times

CHANGES, LOOK = 200, 20
"""How many, and after how many all routes are computed anew, to compare."""
WARM = 10
"""Changes before those, so that kernels are loaded."""
MILLISECONDS, CHANGED, WORSE = 100, 10, 1.02


def tables(full: bool, kept: Kept) -> Iterator[Table]:
    """One for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(name, kept(f"changes {name}", lambda n=name: _measure(n)))


class Stages(defaultdict[str, Times]):
    """Times by name of stage; passed to who does the work."""

    def __init__(self) -> None:
        super().__init__(Times)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        with self[stage].one():
            yield


def _measure(name: str) -> dict[str, Any]:
    """Seconds and shares of each change; quality, of the present routes and of routes computed
    anew, at every look; and what one tending does to the last."""
    fabric, stages = fabric_of(name), Stages()
    queue = Queue(fabric, 1)
    config = Config(agent=AgentConfig(reoptimise_seconds=1e-9))  # it is we who say when
    planner = Planner(config, load_engine("sar-plus"), stages)
    plan = planner.plan(1, fabric, queue.mix)
    changed, looks = [], []
    for done, mix in enumerate(islice(queue.changes(), WARM + CHANGES), 1 - WARM):
        before, plan = plan, planner.plan(1, fabric, mix)
        changed.append(_changed(before, plan))
        if done > 0 and done % LOOK == 0:
            looks.append([_quality(plan), _quality(_anew(fabric, mix))])
    times = {stage: found[1 + WARM :] for stage, found in stages.items()}
    tending = Times()
    with tending.one():
        why = planner.tend(fabric, mix)
    tended = planner.plan(1, fabric, mix) if why else plan
    return {
        "times": times,
        "changed": changed[WARM:],
        "looks": looks,
        "tended": [tending[0], _changed(plan, tended), _quality(tended)],
    }


def _changed(before: Plan, plan: Plan) -> float:
    return plan.routes.entries_changed(before.routes) / plan.routes.egress.size


def _anew(fabric: Fabric, mix: JobMix) -> Plan:
    return make_plan(1, fabric, mix, load_engine("sar-plus").route(fabric, mix, Options()))


def _quality(plan: Plan) -> tuple[float, float, float]:
    found = plan.measures
    return found.load_max, found.throughput_mean, found.throughput_min


def _table(name: str, found: dict[str, Any]) -> Table:
    stages = [found["times"][stage] for stage in ("route", "check", "measure")]
    whole = [sum(parts) for parts in zip(*stages, strict=True)]
    table = Table(
        f"A job starts or ends: {size_of(fabric_of(name))}",
        ("", "median", "mean", "worst"),
        f"`{name}`, {CHANGES} random changes, one after the other, from `mix:1` on (85 % of the "
        "hosts busy, jobs of 2 to 64 hosts), `sar-plus`; each from the plan before, by the agent's "
        "planner. A plan is routes that passed the check, with their measures. Quality: the "
        f"present routes compared with a full recomputation for the same jobs, every {LOOK} "
        "changes. While the jobs are quiet the agent compares the routes with such a "
        "recomputation, and improves or replaces them where they are more than 2 % worse.",
    )
    for what, times in zip(("routes", "check", "measures"), stages, strict=True):
        _add(table, f"{what}, ms", times, 1e3, ".1f")
    _add(table, "in all, to the plan, ms", whole, 1e3, ".1f")
    _add(table, "entries changed, %", found["changed"], 100, ".2f")
    load, mean, worst = ([now[i] / anew[i] for now, anew in found["looks"]] for i in range(3))
    _add(table, "largest load / full", load, 1, ".3f")
    table.add("mean throughput / full", *(f"{f(mean):.3f}" for f in (median, fmean, min)))
    table.add("worst job's throughput / full", *(f"{f(worst):.3f}" for f in (median, fmean, min)))
    seconds, share, now = found["tended"]
    after = now[0] / found["looks"][-1][1][0]
    table.goals = [
        goal("to the plan, median", median(whole) * 1e3, MILLISECONDS, "ms"),
        goal("to the plan, worst", max(whole) * 1e3, MILLISECONDS, "ms"),
        goal("entries changed, mean", 100 * fmean(found["changed"]), CHANGED, "%"),
        goal("entries changed, worst", 100 * max(found["changed"]), CHANGED, "%"),
        goal(f"largest load / full after {CHANGES} changes, not improved", load[-1], WORSE, ""),
        goal("and improved once", after, WORSE, ""),
        f"This took {seconds:.2f} s in the background and changed {share:.1%} of the entries.",
    ]
    return table


def _add(table: Table, what: str, values: list[float], scale: float, form: str) -> None:
    table.add(what, *(f"{f(values) * scale:{form}}" for f in (median, fmean, max)))
