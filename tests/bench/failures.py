"""The time to repair and to prove routes when a link or a switch fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sar_agent.check import check_and_prove
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs.model import moved_mix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, PreviousRoutes, Rerouting, load_engine
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal
from tests.bench.timing import Times

FAILURES = 12
"""The number of failures of each kind; each starts from the whole fabric."""
MEDIAN, WORST = 40, 80
"""Milliseconds."""
OPTIONS = Options()
Repairs = dict[str, list[dict[str, float]]]
"""Kind of failure → the measurements of each failure."""


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(name, kept(f"failures {name}", lambda n=name: _measure(n)))


def _measure(name: str) -> Repairs:
    fabric = fabric_of(name)
    mix, engine = synthetic_mix(fabric, 1), load_engine("sar-plus")
    assert isinstance(engine, Rerouting)
    found: Repairs = {}
    for kind, broken in failures_of(fabric).items():
        for again in range(FAILURES + 1):
            # The engine has computed the present routes, as in a running agent.
            plan = make_plan(1, fabric, mix, engine.route(fabric, mix, OPTIONS))
            repaired = _repair(engine, plan, broken())
            if again:  # the first repair loads the kernels
                found.setdefault(kind, []).append(repaired)
    return found


def failures_of(fabric: Fabric) -> dict[str, Callable[[], Fabric]]:
    """Kind of failure → a function that returns the fabric after it."""
    random = np.random.default_rng(1)
    level = _levels(fabric)

    def without(wanted: int) -> Fabric:
        return fabric.with_switches_down([int(random.choice(np.flatnonzero(level == wanted)))])

    return {
        "a link": lambda: fabric.with_links_down([int(random.integers(fabric.channels))]),
        "a spine": lambda: without(2),
        "a switch below the spines": lambda: without(1),
        "a leaf switch": lambda: without(0),
    }


def _levels(fabric: Fabric) -> NDArray[np.int64]:
    """int64[S] on a three-level tree: 0 for leaf switches."""
    leaf = fabric.terminals_at > 0
    level = np.where(leaf, 0, 2)
    level[fabric.channel_target[leaf[fabric.channel_source]]] = 1
    return level


def _repair(engine: Rerouting, plan: Plan, broken: Fabric) -> dict[str, float]:
    mix = moved_mix(plan.mix, plan.fabric, broken)
    routing, checking, improving = Times(), Times(), Times()
    with routing.one():
        routes = engine.reroute(
            PreviousRoutes(plan.fabric, plan.mix, plan.routes), broken, mix, OPTIONS
        )
    with checking.one():
        verdict = check_and_prove(broken, routes).verdict
    verdict.require()
    repaired = make_plan(1, broken, mix, routes, before=plan)
    with improving.one():
        routes = engine.reroute(PreviousRoutes(broken, mix, repaired.routes), broken, mix, OPTIONS)
    improved = make_plan(1, broken, mix, routes, before=repaired)
    recomputed = make_plan(1, broken, mix, load_engine("sar-plus").route(broken, mix, OPTIONS))
    least = recomputed.measures.load_max
    return {
        "processor": routing.cpu[0] + checking.cpu[0],
        "route": routing[0],
        "check": checking[0],
        "changed": repaired.routes.entries_changed(plan.routes) / routes.egress.size,
        "load": repaired.measures.load_max / least,
        "better": improving[0],
        "better_load": improved.measures.load_max / least,
    }


def _table(name: str, found: Repairs) -> Table:
    table = Table(
        f"Something fails: {size_of(fabric_of(name))}",
        (
            "fails",
            "repair, ms",
            "check, ms",
            "total, ms",
            "CPU time, ms",
            "entries changed",
            "load / recomputed",
            "improvement, ms",
            "load / recomputed, then",
        ),
        f"`{name}`, `mix:1`, {FAILURES} of each at random, each on the whole fabric: median "
        "(worst). Repair: `reroute` gives routes for every pair; check: the proof that every pair "
        "is reached without a credit loop; both start from the previous routes. Improvement: "
        "`reroute` once more. Load: the largest load, compared with a full recomputation on the "
        "remaining fabric.",
    )
    for kind, each in found.items():
        both = [run["route"] + run["check"] for run in each]
        table.add(
            kind,
            *(_show([run[key] for run in each], 1e3, ".1f") for key in ("route", "check")),
            _show(both, 1e3, ".1f"),
            _show([run["processor"] for run in each], 1e3, ".1f"),
            _show([run["changed"] for run in each], 1, ".2%"),
            _show([run["load"] for run in each], 1, ".3f"),
            _show([run["better"] for run in each], 1e3, ".1f"),
            _show([run["better_load"] for run in each], 1, ".3f"),
        )
        table.goals.append(goal(f"{kind}, median", median(both) * 1e3, MEDIAN, "ms"))
        table.goals.append(goal(f"{kind}, worst", max(both) * 1e3, WORST, "ms"))
    return table


def _show(values: list[float], scale: float, form: str) -> str:
    return f"{median(values) * scale:{form}} ({max(values) * scale:{form}})"
