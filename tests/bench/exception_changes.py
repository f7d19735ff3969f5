"""What changes when jobs start and end, and when something dies. Part of `tests.bench
exceptions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.endpoints import multi_switch_mix, synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, PreviousRoutes, Rerouting, Routes, load_engine
from tests.bench.bench_fabrics import MIDDLE, fabric_of
from tests.bench.exception_rows import differing, template
from tests.bench.queue import Queue
from tests.bench.table import Table, goal


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


CHANGES, DEATHS = 60, 12
START, END, DEATH = 1.5, 0.0, 3.0
ENTRIES_EVER = 0.2
OPTIONS = Options()


def change_tables(engine: str, before: dict[str, list[float]]) -> Iterator[Table]:
    """Starts and ends of jobs; deaths."""
    yield _jobs_table(engine, before)
    yield _deaths_table(engine)


def job_changes(name: str, engine_name: str) -> dict[str, list[int]]:
    """Hosts' entries that change at each start and end of a job, with those among them that then
    are the template's again (`given back`); and those that differ from it after each."""
    fabric, engine, base = fabric_of(name), load_engine(engine_name), template(name)
    queue = Queue(fabric, 1)
    mix, routes = queue.mix, engine.route(fabric, queue.mix, OPTIONS)
    found: dict[str, list[int]] = {
        key: [] for key in ("start", "end", "start, given back", "end, given back", "differ")
    }
    for changed in islice(queue.changes(), CHANGES):
        kind = "start" if len(changed.jobs) > len(mix.jobs) else "end"
        after = _rerouted(engine, PreviousRoutes(fabric, mix, routes), fabric, changed)
        old, new = routes.egress[0], after.egress[0]
        back = differing(fabric, old, new) - differing(fabric, np.where(new == base, old, new), old)
        found[f"{kind}, given back"].append(back)
        found[kind].append(differing(fabric, old, new) - back)
        found["differ"].append(differing(fabric, new, base))
        mix, routes = changed, after
    return found


def _rerouted(engine: Any, before: PreviousRoutes, fabric: Fabric, mix: JobMix) -> Routes:
    """As the agent does: an engine without `reroute` makes all routes again."""
    if isinstance(engine, Rerouting):
        return engine.reroute(before, fabric, mix, OPTIONS)
    return engine.route(fabric, mix, OPTIONS)  # type: ignore[no-any-return]


def _jobs_table(engine: str, before: dict[str, list[float]]) -> Table:
    found = job_changes(MIDDLE, engine)
    table = Table(
        f"Entries that change with the jobs: {engine}",
        ("", "changes", "mean", "median", "largest", "none", "today's mean", "today's median"),
        f"`{MIDDLE}`, from `mix:1` on (hosts at random, the worst case of fat-tree routes), "
        f"{CHANGES} starts and ends, `reroute` after each. Hosts' entries. Given back: those that "
        "are the template's again afterwards; they are not in the row above.",
    )
    for key, values in found.items():
        what = {"start": "a job starts", "end": "a job ends"}.get(key, key)
        what = "differ from the template" if key == "differ" else what
        today = [f"{value:,.1f}" for value in before.get(key, ())] or ["", ""]
        none = fmean(value == 0 for value in values)
        table.add(what, str(len(values)), f"{fmean(values):,.1f}", f"{median(values):g}",
                  f"{max(values):,}", f"{none:.0%}", *today)  # fmt: skip
    mean, middle = before["start"]
    table.goals = [
        goal("a job starts, mean over today's", fmean(found["start"]) / mean, START, ""),
        goal("a job starts, median over today's", median(found["start"]) / middle, START, ""),
        goal("a job ends, largest", max(found["end"]), END, "entries"),
    ]
    return table


def _deaths_table(engine_name: str) -> Table:
    fabric = fabric_of(MIDDLE)
    mix, engine = synthetic_mix(fabric, 1), load_engine(engine_name)
    table = Table(
        f"Entries that change when something dies: {engine_name}",
        ("dies", "led over it, mean", "repaired, mean", "and improved, mean",
         "improved / led over it, mean", "largest"),
        f"`{MIDDLE}`, `mix:1`, {DEATHS} of each at random, each on the whole fabric. Entries of "
        "live hosts in live switches. Repaired: the first `reroute`; improved: a second one after "
        "it, compared with the routes before the failure.",
    )  # fmt: skip
    for kind, broken in failures_of(fabric).items():
        led, repaired, improved = [], [], []
        for _ in range(DEATHS):
            routes, after = engine.route(fabric, mix, OPTIONS), broken()
            left = multi_switch_mix(after, mix.jobs)
            first = _rerouted(engine, PreviousRoutes(fabric, mix, routes), after, left)
            second = _rerouted(engine, PreviousRoutes(after, left, first), after, left)
            led.append(_led_over(routes, fabric, after))
            repaired.append(differing(after, routes.egress[0], first.egress[0]))
            improved.append(differing(after, routes.egress[0], second.egress[0]))
        ratios = [new / old for new, old in zip(improved, led, strict=True) if old]
        table.add(kind, *(f"{fmean(v):,.0f}" for v in (led, repaired, improved)),
                  *(f"{of(ratios):.2f}" if ratios else "–" for of in (fmean, max)))  # fmt: skip
        if ratios:  # no live host's entry leads over a dead leaf switch
            table.goals.append(goal(f"{kind}, mean", fmean(ratios), DEATH, "times"))
    return table


def _led_over(routes: Routes, before: Fabric, after: Fabric) -> int:
    """Entries of live hosts in live switches along channels that died."""
    dead = before.channel_up & ~after.channel_up & after.switch_up[before.channel_source]
    rows = routes.egress[0][: before.terminals][after.is_host_port]
    columns = rows[:, before.channel_source[dead]]
    return int((columns == before.channel_port[dead]).sum())
