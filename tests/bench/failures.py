"""What it costs when a link or a switch fails: to routes that reach again, and to their proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sar_agent.check import check_changed
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs.model import moved_mix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, PreviousRoutes, Rerouting, load_engine
from tests.bench.fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.kept import Kept
from tests.bench.table import Table, goal
from tests.bench.timing import Times

FAILURES = 12
"""Of each kind, each on the whole fabric."""
MILLISECONDS = 100
OPTIONS = Options()
Repairs = dict[str, list[dict[str, float]]]
"""By kind of failure."""


def tables(full: bool, kept: Kept) -> Iterator[Table]:
    """One for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(name, kept(f"failures {name}", lambda n=name: _measure(n)))


def _measure(name: str) -> Repairs:
    fabric = fabric_of(name)
    mix, engine = synthetic_mix(fabric, 1), load_engine("sar-plus")
    assert isinstance(engine, Rerouting)
    found: Repairs = {}
    for kind, broken in _failures(fabric).items():
        for again in range(FAILURES + 1):
            # The engine knows the routes that stand, as in an agent that runs.
            plan = make_plan(1, fabric, mix, engine.route(fabric, mix, OPTIONS))
            repaired = _repair(engine, plan, broken())
            if again:  # the first loads kernels
                found.setdefault(kind, []).append(repaired)
    return found


def _failures(fabric: Fabric) -> dict[str, Callable[[], Fabric]]:
    """By kind, what makes the fabric without one of it."""
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
    routing, checking, bettering = Times(), Times(), Times()
    with routing.one():
        routes = engine.reroute(
            PreviousRoutes(plan.fabric, plan.mix, plan.routes), broken, mix, OPTIONS
        )
    with checking.one():
        verdict = check_changed(broken, routes, plan.proved).verdict
    verdict.require()
    repaired = make_plan(1, broken, mix, routes, before=plan)
    with bettering.one():
        routes = engine.reroute(PreviousRoutes(broken, mix, repaired.routes), broken, mix, OPTIONS)
    bettered = make_plan(1, broken, mix, routes, before=repaired)
    anew = make_plan(1, broken, mix, load_engine("sar-plus").route(broken, mix, OPTIONS))
    least = anew.measures.load_max
    return {
        "route": routing[0],
        "check": checking[0],
        "changed": repaired.routes.entries_changed(plan.routes) / routes.egress.size,
        "load": repaired.measures.load_max / least,
        "better": bettering[0],
        "better_load": bettered.measures.load_max / least,
    }


def _table(name: str, found: Repairs) -> Table:
    table = Table(
        f"Something fails: {size_of(fabric_of(name))}",
        (
            "fails",
            "repair, ms",
            "check, ms",
            "in all, ms",
            "entries changed",
            "load / full",
            "improving, ms",
            "load / full then",
        ),
        f"`{name}`, `mix:1`, {FAILURES} of each at random, each on the whole fabric: median "
        "(worst). Repair: `reroute` to routes for every pair; check: every pair reaches and no "
        "credit loop, proved; both from the routes before. Improving: `reroute` once more. Load: "
        "the largest, compared with a full computation on the rest.",
    )
    for kind, each in found.items():
        both = [one["route"] + one["check"] for one in each]
        table.add(
            kind,
            *(_show([one[key] for one in each], 1e3, ".1f") for key in ("route", "check")),
            _show(both, 1e3, ".1f"),
            _show([one["changed"] for one in each], 1, ".2%"),
            _show([one["load"] for one in each], 1, ".3f"),
            _show([one["better"] for one in each], 1e3, ".1f"),
            _show([one["better_load"] for one in each], 1, ".3f"),
        )
        table.goals.append(goal(f"{kind}, median", median(both) * 1e3, MILLISECONDS, "ms"))
        table.goals.append(goal(f"{kind}, worst", max(both) * 1e3, MILLISECONDS, "ms"))
    return table


def _show(values: list[float], scale: float, form: str) -> str:
    return f"{median(values) * scale:{form}} ({max(values) * scale:{form}})"
