"""200 job changes: how each new plan may come into force, and how much of the tables it rewrites.

On three kinds of fabric: a tree, where every transition is direct; the same with cables missing;
and a broken torus with lanes by path, where old routes and new ones must often not be mixed. (A
whole one has regular routes, which no job changes.)
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
from tests.bench.fabrics import LARGEST, MIDDLE
from tests.bench.kept import Kept
from tests.bench.queue import Queue
from tests.bench.table import Table, goal
from tests.bench.timing import Times

CHANGES = 200
TREE, LARGE = MIDDLE, LARGEST
LESS = " less 5 % of its cables"
BROKEN, TORUS = TREE + LESS, "torus:3x3x3,hosts=8" + LESS
SECONDS = {TREE: 0.2, LARGE: 5.0}


def tables(full: bool, kept: Kept) -> Iterator[Table]:
    """One a fabric."""
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
    """Ways and shares of each change, from what came into force the change before."""
    fabric = _fabric(name)
    queue = Queue(fabric, 1)
    config = Config(agent=AgentConfig(reoptimise_seconds=0, lanes="path"))
    planner = Planner(config, load_engine(engine))
    stands = planner.plan(1, fabric, queue.mix)
    took, anew_took = Times(), Times()
    ways: dict[str, list[str]] = {"planned": [], "anew": []}
    shares: dict[str, list[float]] = {"planned": [], "anew": []}
    stages: list[int] = []
    anew = _anew(engine, fabric, queue.mix)
    examine(fabric, anew, stands.routes)  # the kernels are loaded
    for mix in islice(queue.changes(), CHANGES):
        plan = planner.plan(1, fabric, mix)
        with took.one():
            found = examine(fabric, stands.routes, plan.routes, plan.proved)
        ways["planned"].append(found.way.value)
        stages.append(len(found.stages))
        after = _arrived(plan, found) or stands
        shares["planned"].append(_share(stands.routes, after.routes))
        stands = after
        planner.adopt(stands)
        other = _anew(engine, fabric, mix)
        with anew_took.one():
            ways["anew"].append(examine(fabric, anew, other).way.value)
        shares["anew"].append(_share(anew, other))
        anew = other
    return {
        "seconds": took,
        "seconds anew": anew_took,
        "ways": ways,
        "shares": shares,
        "stages": stages,
        "size": [fabric.terminals, fabric.switches],
    }


def _anew(engine: str, fabric: Fabric, mix: Any) -> Routes:
    return routed(load_engine(engine), fabric, mix, Options(lanes="path"))


def _arrived(plan: Plan, found: Transition) -> Plan | None:
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
        ("", "from the routes in force", "all from scratch"),
        f"`{name}`, lanes by path where one is not enough. Each plan is compared with the "
        "tables in force before; a full recomputation with the full recomputation before.",
    )
    counts = {which: Counter(ways) for which, ways in found["ways"].items()}
    for way in ("same", "direct", "staged", "fitted", "unproved", "unsafe"):
        if any(count[way] for count in counts.values()):
            shares = [f"{counts[which][way] / CHANGES:.1%}" for which in ("planned", "anew")]
            table.add(way, *shares)
    shares = found["shares"]
    means = [f"{np.mean(shares[which]):.2%}" for which in ("planned", "anew")]
    table.add("entries changed, mean", *means)
    table.add("stages, most", str(max(found["stages"])), "")
    times = found["seconds"], found["seconds anew"]
    table.add("examined in, ms, median", *(f"{1e3 * np.median(t):.1f}" for t in times))
    table.add("examined in, ms, worst", *(f"{1e3 * max(t):.1f}" for t in times))
    if name in SECONDS:
        worst = max(max(t) for t in times)
        table.goals.append(goal("transition check, worst", worst, SECONDS[name], "s"))
    return table
