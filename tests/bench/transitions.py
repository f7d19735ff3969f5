"""200 job changes: how each new plan can be installed, and how much of the tables it changes.

There are three kinds of fabric: a tree, where every transition is direct; the same tree without
some cables; and a torus without some cables and with lanes by path, where old and new routes often
must not be mixed. (A complete torus has regular routes, which do not depend on jobs.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from sar_agent.agent.planner import Planner
from sar_agent.check.transition import Transition, examine
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from tests.bench.bench_fabrics import LARGEST, MIDDLE
from tests.bench.queue import Queue
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal
from tests.bench.timing import Times

CHANGES = 200
TREE, LARGE = MIDDLE, LARGEST
LESS = " less 5 % of its cables"
BROKEN, TORUS = TREE + LESS, "torus:3x3x3,hosts=8" + LESS
SECONDS = {TREE: 0.2, LARGE: 5.0}


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A table for each fabric."""
    cases = [(TREE, "sar-plus"), (TREE, "sar"), (BROKEN, "sar-plus"), (TORUS, "sar-plus")]
    for name, engine in cases + ([(LARGE, "sar-plus")] if full else []):
        key = f"transitions {engine} {name}"
        yield _table(name, engine, kept(key, lambda n=name, e=engine: _measure(n, e)))


def _fabric(name: str) -> Fabric:
    whole = load_fabric(name.removesuffix(LESS))
    if not name.endswith(LESS):
        return whole
    random = np.random.default_rng(1)
    cables = np.flatnonzero(np.arange(whole.channels) < whole.channel_reverse)
    return whole.with_links_down(random.choice(cables, len(cables) // 20, False).tolist())


def _measure(name: str, engine: str) -> dict[str, Any]:
    """The way and the changed share of each change, starting from the routes that the previous
    change left in force."""
    fabric = _fabric(name)
    queue = Queue(fabric, 1)
    config = Config(agent=AgentConfig(reoptimise_seconds=0, lanes="path"))
    planner = Planner(config, load_engine(engine))
    in_force = planner.plan(1, fabric, queue.mix)
    seconds, full_seconds = Times(), Times()
    ways: dict[str, list[str]] = {"planned": [], "recomputed": []}
    shares: dict[str, list[float]] = {"planned": [], "recomputed": []}
    stages: list[int] = []
    recomputed = _recomputed(engine, fabric, queue.mix)
    examine(fabric, recomputed, in_force.routes)  # loads the kernels
    for mix in islice(queue.changes(), CHANGES):
        plan = planner.plan(1, fabric, mix)
        with seconds.one():
            found = examine(fabric, in_force.routes, plan.routes, plan.proved)
        ways["planned"].append(found.way.value)
        stages.append(len(found.stages))
        after = _plan_in_force(plan, found) or in_force
        shares["planned"].append(_share(in_force.routes, after.routes))
        in_force = after
        planner.adopt(in_force)
        other = _recomputed(engine, fabric, mix)
        with full_seconds.one():
            ways["recomputed"].append(examine(fabric, recomputed, other).way.value)
        shares["recomputed"].append(_share(recomputed, other))
        recomputed = other
    return {
        "seconds": seconds,
        "seconds recomputed": full_seconds,
        "ways": ways,
        "shares": shares,
        "stages": stages,
        "size": [fabric.terminals, fabric.switches],
    }


def _recomputed(engine: str, fabric: Fabric, mix: Any) -> Routes:
    return routed(load_engine(engine), fabric, mix, Options(lanes="path"))


def _plan_in_force(plan: Plan, found: Transition) -> Plan | None:
    if not found.stages:
        return None
    last = found.stages[-1]
    if last is plan.routes:
        return plan
    try:
        return make_plan(1, plan.fabric, plan.mix, last, before=plan)
    except SarError:
        return None


def _share(before: Routes, after: Routes) -> float:
    return after.entries_changed(before) / after.egress.size


def _table(name: str, engine: str, found: dict[str, Any]) -> Table:
    terminals, switches = found["size"]
    table = Table(
        f"{CHANGES} job changes, `{engine}`: {terminals:,} hosts, {switches:,} switches",
        ("", "from the routes in force", "fully recomputed"),
        f"`{name}`, lanes by path where one is not enough. Each plan is compared with the routes "
        "that the previous one left in force; a full recomputation is compared with the previous "
        "full recomputation.",
    )
    counts = {which: Counter(ways) for which, ways in found["ways"].items()}
    for way in ("same", "direct", "staged", "fitted", "unproved", "unsafe"):
        if any(count[way] for count in counts.values()):
            shares = [f"{counts[which][way] / CHANGES:.1%}" for which in ("planned", "recomputed")]
            table.add(way, *shares)
    shares = found["shares"]
    means = [f"{np.mean(shares[which]):.2%}" for which in ("planned", "recomputed")]
    table.add("entries changed, mean", *means)
    table.add("most stages", str(max(found["stages"])), "")
    times = found["seconds"], found["seconds recomputed"]
    table.add("time to examine, ms, median", *(f"{1e3 * np.median(t):.1f}" for t in times))
    table.add("time to examine, ms, worst", *(f"{1e3 * max(t):.1f}" for t in times))
    if name in SECONDS:
        worst = max(max(t) for t in times)
        table.goals.append(goal("transition check, worst", worst, SECONDS[name], "s"))
    return table
