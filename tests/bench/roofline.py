"""The speed of the kernels, compared with loops that only read the same numbers.

A relaxation computes the cost of a path over one channel on a shortest path. SAR's kernel reads
adjacent weights of siblings, so its roof is a plain scan. SAR+ follows a DAG, so its roof is the
sum of the same numbers by the same indices, without a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import U32
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing.balanced_trees import _first_pass
from sar_agent.routing.channel_loads import ChannelLoads
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.pending_paths import PathScratch
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar_plus_balance import RouteBalance
from sar_agent.routing.shortest_paths import ShortestPaths
from sar_agent.routing.weighted_trees import EVERYONE, grow
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.kernel_work import relaxations
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table
from tests.bench.timing import Times, repeat

RUNS = 5
WEIGHT, FOUR_INDICES = 4, 16
"""Bytes a relaxation reads: a uint32; edge, its target, its price and the target's cost."""
STREAM_BYTES = 1 << 28
SCANS = 1000


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(name, kept(f"roofline {name}", lambda n=name: _measure(n)))


def _table(name: str, found: dict[str, tuple[float, float, int]]) -> Table:
    table = Table(
        f"Roofline: {size_of(fabric_of(name))}",
        ("", "M / s", "bytes each", "GB / s", "of its roof"),
        f"`{name}`, `mix:1`, best of {RUNS}; one core. `sar`: its whole growing of trees, every "
        "destination once with all its routes counted, as DFSSSP does. `sar-plus`: the first pass "
        "of each tree, over what its job may use.",
    )
    rate = {what: count / seconds / 1e6 for what, (seconds, count, _) in found.items()}
    for what, (_, _, size) in found.items():
        roof = ROOFS.get(what)
        share = f"{rate[what] / rate[roof]:.0%}" if roof else ""
        table.add(what, f"{rate[what]:,.0f}", str(size), f"{rate[what] * size / 1e3:.1f}", share)
    return table


SAR, PLUS = "sar, relaxations", "sar-plus, relaxations of the first pass"
SCAN, WALK = "least of uint32 side by side, in the cache", "sums along the same DAGs"
ROOFS = {SAR: SCAN, PLUS: WALK}


def _measure(name: str) -> dict[str, tuple[float, float, int]]:
    """Kernel → (seconds, number of operations, bytes of each)."""
    fabric = fabric_of(name)
    mix = synthetic_mix(fabric, 1)
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    balance = RouteBalance(ShortestPaths(fabric), mix, egress, "load")
    balance.place(balance.terminals)
    hosts = np.flatnonzero(fabric.is_host_port).astype(np.int32)
    who, weight = np.full(len(hosts), EVERYONE, np.uint8), np.zeros(fabric.channels, np.int64)

    def grown() -> None:
        grow(balance.shortest, balance.cache, mix, hosts, who, weight, egress)

    parts = balance.graph, balance.cache, balance.work, balance.loads, balance.scratch
    near, far = (
        np.ones(size // WEIGHT, np.uint32) for size in (WEIGHT * fabric.channels, STREAM_BYTES)
    )
    lanes = np.empty(64, np.uint32)
    passed, walked = (
        int(work(*parts, balance.terminals, True)) for work in (_first_passes, _walks)
    )
    return {
        SAR: (_best(grown), relaxations(fabric), WEIGHT),
        SCAN: (_best(lambda: _scan(near, lanes, SCANS)), SCANS * len(near), WEIGHT),
        "the same, from memory": (_best(lambda: _scan(far, lanes, 1)), len(far), WEIGHT),
        PLUS: (_best(lambda: _first_passes(*parts, balance.terminals, False)), passed,
               FOUR_INDICES),
        WALK: (_best(lambda: _walks(*parts, balance.terminals, False)), walked, FOUR_INDICES),
    }  # fmt: skip


def _best(work: Callable[[], object]) -> float:
    return min(Times(repeat(work, RUNS + 1)[1:]))


@njit
def _scan(
    numbers: NDArray[np.uint32], least: NDArray[np.uint32], times: int
) -> None:  # pragma: no cover
    """The minimum of each lane, as in the pricing of siblings."""
    lanes = np.uint32(len(least))
    for again in range(times):
        least[:] = 1 << 31
        for at in range(np.uint32(0), np.uint32(len(numbers)) - lanes + np.uint32(1), lanes):
            for lane in range(lanes):
                least[lane] = min(least[lane], np.uint32(again + numbers[at + lane]))


@njit
def _first_passes(
    graph: Graph,
    cache: DagCache,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    dests: U32,
    count: bool,
) -> int:  # pragma: no cover
    """Runs the first pass of each tree; returns the number of relaxations if `count`."""
    found = 0
    for d in dests:
        row = dag_row(graph, cache, work.root[d])
        for q in range(work.on_offset[d], work.on_offset[d + np.uint32(1)]):
            job = work.on_job[q]
            for i in range(work.leaf_offset[job], work.leaf_offset[job + np.uint32(1)]):
                scratch.needed[work.leaf[i]] = True
        _first_pass(graph, cache, row, loads, scratch)
        if count:
            for i in range(1, cache.size[row]):
                if scratch.needed[cache.order[row, i]]:
                    found += cache.start[row, i + 1] - cache.start[row, i]
        scratch.needed[:] = False
    return found


@njit
def _walks(
    graph: Graph,
    cache: DagCache,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    dests: U32,
    count: bool,
) -> float:  # pragma: no cover
    """The sum of all numbers that relaxations read, over whole DAGs; their number if `count`."""
    edges = 0
    total = np.float32(0)
    for d in dests:
        row = dag_row(graph, cache, work.root[d])
        size = cache.start[row, cache.size[row]]
        edges += size
        edge = cache.edge[row]
        for e in range(size):
            c = edge[e]
            total += loads.price[c] + scratch.cost[graph.target[c]]
    return edges if count else total
