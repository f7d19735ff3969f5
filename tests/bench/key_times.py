"""The time to compute a routing key, its shift and its rows, and the remaining contention."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs.patterns import rank_phases
from sar_agent.keys.routes import Flows, KeyTree, choose_shift, key_tree, make_key, rows_of
from tests.bench.bench_fabrics import available, fabric_of
from tests.bench.table import Table, goal
from tests.bench.timing import Times

FABRICS = ("xgft:2;36,48;1,36", "xgft:3;12,12,12;1,12,12", "selene-storage", "director-notabs")
RUNS = 10
GRID = "stencil3d:12x12x12"


def tables(full: bool) -> Iterator[Table]:
    """The table of routing keys."""
    table = Table(
        "Routing keys",
        ("fabric", "hosts", "pattern", "apart", "key, ms", "shift, ms", "rows, ms",
         "flows on a link"),
        f"Hosts in random order, {RUNS} draws. *all*: one permutation of all hosts; *1 of 32*: one "
        "of 32 jobs, each a permutation of its hosts, with the keys of the other jobs; *stencil*: "
        f"`{GRID}` on as many hosts. Apart: *phase*, a key of one phase; *one*, six phases share a "
        "LID offset. Median (least … most) milliseconds of CPU time, with loaded kernels and a "
        "recognised tree. Flows on a link: the job's own in any phase, the most of all draws "
        "(and the lower bound).",
    )  # fmt: skip
    for name in filter(available, FABRICS):
        fabric = fabric_of(name)
        tree = key_tree(fabric)
        for pattern in ("all", "1 of 32", "stencil", "stencil, one"):
            if pattern.startswith("stencil") and fabric.terminals < 1728:
                continue
            _measure(table, name, tree, pattern)
    yield table


def _measure(table: Table, name: str, tree: KeyTree, pattern: str) -> None:
    fabric = tree.fabric
    key_times, shift_times, row_times = Times(), Times(), Times()
    worst, bound = 0, 0
    for run in range(RUNS + 1):
        load, phases = _draw(tree, pattern, run)
        first = run == 0  # loads kernels
        with (Times() if first else key_times).one():
            key = make_key(tree, phases)
        with (Times() if first else shift_times).one():
            shift = choose_shift(key, load)
        with (Times() if first else row_times).one():
            rows_of(key, shift, fabric)
        worst = max(worst, *(phase.flows for phase in key.contention))
        bound = max(bound, *(phase.bound for phase in key.contention))
    words, _, apart = pattern.partition(", ")
    table.add(
        f"`{name}`", f"{fabric.terminals:,}", words, apart or "phase",
        *(Times(times.cpu).show(".1f", 1e3) for times in (key_times, shift_times, row_times)),
        f"{worst} ({bound})",
    )  # fmt: skip
    if name == "xgft:3;12,12,12;1,12,12" and pattern == "all":
        table.goals.append(goal("key of 1,728 flows", median(key_times.cpu) * 1e3, 100, "ms"))
        table.goals.append(goal("its shift", median(shift_times.cpu) * 1e3, 10, "ms"))


def _draw(tree: KeyTree, pattern: str, seed: int) -> tuple[np.ndarray, list[Flows]]:
    """(others' load, phases)"""
    fabric = tree.fabric
    random = np.random.default_rng(seed)
    hosts = random.permutation(_hosts(fabric)).astype(np.int32)
    load = np.zeros(fabric.channels, np.int64)
    if pattern.startswith("stencil"):
        phases = [(hosts[p.source], hosts[p.destination]) for p in rank_phases(GRID, 1728)]
        load += random.integers(0, 2, fabric.channels)
        return load, phases if pattern.endswith("one") else phases[:1]
    parts = np.array_split(hosts, 32) if pattern != "all" else [hosts]
    flows = [(part, random.permutation(part)) for part in parts]
    for other in flows[1:]:
        load += choose_shift(make_key(tree, [other]), load).own
    if pattern == "all":
        load += random.integers(0, 2, fabric.channels)
    return load, [flows[0]]


def _hosts(fabric: Fabric) -> np.ndarray:
    return np.flatnonzero(fabric.is_host_port)
