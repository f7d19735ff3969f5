"""Routing keys: how long a key, its shift and its rows take, and what contention is left."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs.patterns import rank_phases
from sar_agent.keys.routes import Flows, KeyTree, choose_shift, key_tree, make_key, rows_of
from tests.bench.fabrics import fabric_of, there
from tests.bench.table import Table, goal
from tests.bench.timing import Times

FABRICS = ("xgft:2;36,48;1,36", "xgft:3;12,12,12;1,12,12", "selene-storage", "director-notabs")
RUNS = 10
GRID = "stencil3d:12x12x12"


def tables(full: bool) -> Iterator[Table]:
    """One table."""
    table = Table(
        "Routing keys",
        ("fabric", "hosts", "pattern", "apart", "key, ms", "shift, ms", "rows, ms",
         "flows on a link"),
        f"Hosts in random order, {RUNS} draws. *all*: one permutation of all hosts; *1 of 32*: one "
        "of 32 jobs, each a permutation of its hosts, the others' keys being there; *stencil*: "
        f"`{GRID}` on as many hosts. Apart: *phase*, a key of one phase; *one*, six phases share a "
        "LID offset. Median (fewest … most) milliseconds of CPU time, kernels loaded, the tree "
        "recognised before. Flows on a link: the job's own in any phase, the most of all draws "
        "(and what no routes can go below).",
    )  # fmt: skip
    for name in filter(there, FABRICS):
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
        worst = max(worst, *(one.flows for one in key.contention))
        bound = max(bound, *(one.bound for one in key.contention))
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
