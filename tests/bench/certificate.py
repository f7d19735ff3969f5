"""Channel numbers: how long it takes to make and verify them, and how many transitions they prove.

Each pair is two full computations for different jobs, which differ in most entries: harder than a
job change of the agent, which keeps most of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np

from sar_agent.check.transition import Transition, Way, examine
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import require_connected
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.util.stages import record_stages
from tests.bench.bench_fabrics import LARGEST, MIDDLE, available, fabric_of, size_of
from tests.bench.table import Table, goal
from tests.bench.timing import Times

PAIRS, LARGE_PAIRS = 8, 2
CASES = (
    ("xgft:2;8,8;1,6", "sar-plus", "path", 0.1),
    ("xgft:3;4,4,4;1,4,4", "sar-plus", "path", 0.0),
    ("xgft:3;4,4,4;1,4,4", "sar-plus", "path", 0.05),
    ("xgft:3;4,4,4;1,4,4", "updn", "path", 0.1),
    ("torus:4x4,hosts=2", "updn", "path", 0.0),
    ("torus:4x4x4,hosts=2", "sar", "hop", 0.0),
    ("torus:4x4x4,hosts=2", "sar", "path", 0.03),
    ("dragonfly:a=6,p=2,h=3", "sar", "hop", 0.0),
    ("dragonfly:a=6,p=2,h=3", "sar", "path", 0.0),
    ("psmn-x5", "sar-plus", "path", 0.0),
    ("small-2014", "sar-plus", "path", 0.0),
    ("dgx-ndr", "sar-plus", "path", 0.0),
    ("selene-storage", "sar-plus", "path", 0.0),
    ("director-notabs", "sar-plus", "path", 0.0),
    (MIDDLE, "sar-plus", "path", 0.0),
    (MIDDLE, "sar-plus", "path", 0.05),
)
"""Fabric, engine, lanes, and the share of cables that it lacks."""
LARGE_CASES = ((LARGEST, "sar", "path", 0.0), (LARGEST, "sar", "path", 0.05))


def tables(full: bool) -> Iterator[Table]:
    """One table of times, one of the orders in which transitions are proved."""
    orders = Table(
        "Orders in which all mixtures of two tables rise",
        ("fabric", "engine, lanes", "pairs", "in force", "of the new", "joint", "stages", "none"),
        "Pairs of full computations for different jobs. *In force*: the numbers of the old tables "
        "rise in the new ones and in all mixtures; *of the new*: those of the new tables do; "
        "*joint*: numbers made for both do; *stages*: through intermediate tables.",
    )
    times = Table(
        "Time of the certificate and of the transition proof, ms",
        ("fabric", "number", "verify", "prove, before", "prove, with numbers"),
        "*number*: channel numbers of checked tables, or the comparison with those in force; "
        "*verify*: one pass over the tables; *prove*: `examine` without and with numbers.",
    )
    cases = CASES + (LARGE_CASES if full else ())
    known = set(available({case[0] for case in cases}))
    for name, engine, lanes, cut in cases:
        if name not in known:
            continue
        count = LARGE_PAIRS if name == LARGEST else PAIRS
        seen, seconds = _measure(name, engine, lanes, cut, count)
        lacks = f" less {cut:.0%}" * (cut > 0)
        columns = ("in force", "of the new", "joint", "stages", "none")
        orders.add(
            name + lacks, f"{engine}, {lanes}", str(count), *(str(seen[what]) for what in columns)
        )
        if seconds:
            shown = (seconds[what].show(".2f", 1e3) for what in ("number", "old", "new"))
            times.add(name + lacks, *shown)
            if name == LARGEST and not cut:
                times.goals.append(goal("verify", seconds["verify"].median, 0.3, "s"))
    yield orders
    yield times


def _measure(
    name: str, engine: str, lanes: str, cut: float, count: int
) -> tuple[Counter[str], dict[str, Times]]:
    fabric = _less(fabric_of(name), cut)
    print(f"{name} {size_of(fabric)}", flush=True)
    options = Options(lanes=lanes, max_lanes=8)  # type: ignore[arg-type]
    seen: Counter[str] = Counter()
    seconds = {what: Times() for what in ("number", "old", "new")}
    for seed in range(count + 1):  # the first loads the kernels
        try:
            before, after = _plans(fabric, engine, options, seed)
        except SarError as error:
            print(f"  {error}")
            seen["none"] += seed > 0
            continue
        kept = after.numbers is before.numbers
        found = examine(fabric, before.routes, after.routes, after.proved, numbers=after.numbers)
        if seed == 0:
            continue
        seen[_order(found, kept)] += 1
        with seconds["new"].one():
            examine(fabric, before.routes, after.routes, after.proved, numbers=after.numbers)
        with seconds["old"].one():
            examine(fabric, before.routes, after.routes, after.proved)
        times = seconds["number"]
        with record_stages(lambda name: times.one() if name == "certificate" else nullcontext()):  # noqa: B023
            make_plan(1, fabric, after.mix, after.routes, before)
    return seen, seconds if seconds["new"] else {}


def _plans(fabric: Fabric, engine: str, options: Options, seed: int) -> tuple[Plan, Plan]:
    mixes = [synthetic_mix(fabric, number) for number in (seed, seed + 50)]
    first, second = (routed(load_engine(engine), fabric, mix, options) for mix in mixes)
    before = make_plan(1, fabric, mixes[0], first)
    return before, make_plan(2, fabric, mixes[1], second, before)


def _order(found: Transition, kept: bool) -> str:
    if found.way in (Way.SAME, Way.DIRECT):
        return ("in force" if kept else "of the new") if found.rising else "joint"
    return "stages" if found.way in (Way.STAGED, Way.FITTED) else "none"


def _less(whole: Fabric, cut: float) -> Fabric:
    """In one piece."""
    random = np.random.default_rng(1)
    cables = np.flatnonzero(np.arange(whole.channels) < whole.channel_reverse)
    while True:
        lost = random.choice(cables, round(len(cables) * cut), replace=False)
        fabric = whole.with_links_down(lost.tolist())
        try:
            require_connected(fabric)
        except SarError:
            continue
        return fabric
