"""The best that minimal-hop routes can do, by solvers and enumeration, on tiny fabrics."""

from __future__ import annotations

from collections import defaultdict

import networkx as nx
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from tests.worlds.oracles import live_graph

Sources = dict[int, dict[int, float]]


def sources(fabric: Fabric, mix: JobMix, load: bool) -> Sources:
    """Destination terminal -> leaf switch -> what it sends there: routes, or Gbit/s."""
    found: Sources = defaultdict(lambda: defaultdict(float))
    for job in mix.jobs:
        slowest = min(float(fabric.terminal_rate[t]) for t in job.terminals)
        each = job.weight * slowest / (len(job.terminals) - 1) if load else 1.0
        for source in job.terminals:
            for destination in job.terminals:
                a, b = fabric.terminal_switch[source], fabric.terminal_switch[destination]
                if a != b:
                    found[int(destination)][int(a)] += each
    return found


def shortest(fabric: Fabric, destination: int) -> dict[int, list[int]]:
    """Switch -> channels that lead one hop closer."""
    graph = live_graph(fabric)
    hops = nx.single_source_shortest_path_length(graph, int(fabric.terminal_switch[destination]))
    return {
        v: [c for _, w, c in graph.out_edges(v, keys=True) if hops[w] == hops[v] - 1] for v in hops
    }


def least_maximum(fabric: Fabric, mix: JobMix, *, load: bool, whole: bool) -> float:
    """The least largest load (or effective EFI) of any minimal-hop routing: each switch sends a
    destination's routes to one channel (`whole`), or splits them at will."""
    demand = sources(fabric, mix, load)
    ways = {d: shortest(fabric, d) for d in demand}
    # What flows to d over c, then whether it may, then the maximum.
    flows = [(d, c) for d in demand for channels in ways[d].values() for c in channels]
    at = {flow: i for i, flow in enumerate(flows)}
    if not flows:
        return 0.0
    last = 2 * len(flows)
    rows: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def require(row: dict[int, float], least: float, most: float) -> None:
        rows.append(row)
        low.append(least)
        high.append(most)

    for d, out in ways.items():
        everything = sum(demand[d].values())
        for v, channels in out.items():
            if not channels:
                continue
            row = {at[d, c]: 1.0 for c in channels}
            into = (c for cs in out.values() for c in cs if fabric.channel_target[c] == v)
            row |= {at[d, c]: -1.0 for c in into}
            require(row, demand[d].get(v, 0.0), demand[d].get(v, 0.0))
            require({len(flows) + at[d, c]: 1.0 for c in channels}, 0.0, 1.0)
            for c in channels:
                i = at[d, c]
                require({i: 1.0, len(flows) + i: -everything}, -np.inf, 0.0 if whole else np.inf)
    for c in {c for _, c in flows}:
        capacity = float(fabric.channel_rate[c]) if load else 1.0
        row = {i: 1.0 for (_, other), i in at.items() if other == c}
        require(row | {last: -capacity}, -np.inf, 0.0)
    matrix = np.zeros((len(rows), last + 1))
    for i, row in enumerate(rows):
        for k, value in row.items():
            matrix[i, k] = value
    integer = np.zeros(last + 1)
    integer[len(flows) : last] = whole
    cost = np.zeros(last + 1)
    cost[last] = 1.0
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(0, np.inf),
        integrality=integer,
    )
    assert found.success, found.message
    return float(found.fun)
