"""Lower bounds against the true optimum, which solvers find on tiny fabrics."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import ceil

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality import bounds_of, measure
from sar_agent.quality.dark_fiber import least_dark_fiber
from sar_agent.quality.job_spread import spread_of
from sar_agent.quality.prices import PriceBound, cheapest, price_bound
from sar_agent.routing import Options, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from tests.examples import examples
from tests.worlds.networks import ENGINES, networks
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


Network = tuple[Fabric, JobMix]
SPLIT = ("leaf", "subtree", "island", "price")
"""Bounds that hold even where routes may be split."""
EPS = 1e-6


@st.composite
def uneven(draw: st.DrawFn) -> Network:
    """`networks`, but cables of 10, 40 and 100 Gbit/s and jobs of different weights."""
    fabric, mix = draw(networks())
    rate = fabric.channel_rate.copy()
    for c in range(fabric.channels):
        rate[c] = rate[fabric.channel_reverse[c]] = draw(st.sampled_from([10, 40, 100]))
    weights = [draw(st.sampled_from([1.0, 0.25])) for _ in mix.jobs]
    jobs = [replace(job, weight=w) for job, w in zip(mix.jobs, weights, strict=True)]
    return replace(fabric, channel_rate=rate), JobMix.of(jobs)


@examples(100, suppress_health_check=[HealthCheck.too_slow])
@given(network=uneven())
def test_bounds_are_below_the_optimum_and_that_below_every_engine(network: Network) -> None:
    bounds = bounds_of(*network, rounds=20)
    measured = [
        measure(*network, load_engine(engine).route(*network, Options())) for engine in ENGINES
    ]
    efi = least_maximum(*network, load=False, whole=True)
    load = least_maximum(*network, load=True, whole=True)
    assert bounds.efi_max <= efi + EPS
    assert bounds.load_max <= load + EPS
    assert efi <= min(m.effective_efi_max for m in measured) + EPS
    assert load <= min(m.load_max for m in measured) + EPS
    split_efi = least_maximum(*network, load=False, whole=False)
    split_load = least_maximum(*network, load=True, whole=False)
    for name in SPLIT:
        assert bounds.efi[name] <= ceil(split_efi - EPS)
        assert bounds.load[name] <= split_load + EPS
    for m in measured:
        assert {
            k: v for k, v in bounds.efi.items() if k not in ("sum", "price")
        } == m.lower_bounds.efi
        assert m.least_dark_fiber <= m.dark_fiber_ratio + EPS


@examples(60)
@given(network=uneven())
def test_prices_find_the_optimum_of_split_routes(network: Network) -> None:
    found = prices_alone(*network, rounds=1000)
    optimum = least_maximum(*network, load=True, whole=False)
    assert 0.97 * optimum - EPS <= found.bound <= optimum + EPS
    assert optimum - EPS <= found.fractional


def prices_alone(fabric: Fabric, mix: JobMix, rounds: int, known: float = 0.0) -> PriceBound:
    spread, graph = spread_of(fabric, mix), graph_of(fabric)
    rate = fabric.channel_rate.astype(np.float64)
    parts = fabric, spread, graph, new_cache(fabric), spread.demand, rate
    return price_bound(*parts, rounds, known=known)


@examples(60)
@given(network=uneven(), data=st.data())
def test_any_prices_bound_the_load(network: Network, data: st.DataObject) -> None:
    fabric, mix = network
    spread, graph = spread_of(fabric, mix), graph_of(fabric)
    rate = fabric.channel_rate.astype(np.float64)
    price = np.array([data.draw(st.integers(0, 3)) for _ in range(fabric.channels)], np.float64)
    total = cheapest(
        graph, new_cache(fabric), spread, spread.demand, price, 0.0, np.zeros_like(price)
    )
    paid = float(price @ (rate * fabric.channel_up))
    assert total <= paid * least_maximum(fabric, mix, load=True, whole=False) + EPS


def test_bounds_are_zero_without_jobs() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,2")
    bounds = bounds_of(fabric, JobMix(()), rounds=3)
    assert (bounds.efi_max, bounds.load_max) == (0, 0.0)
    assert least_dark_fiber(fabric, JobMix(())) == 1.0


def test_where_upper_levels_are_thin_the_subtree_binds() -> None:
    fabric = xgft_fabric("xgft:3;4,4,4;1,4,1")
    bounds = bounds_of(fabric, synthetic_mix(fabric, 1))
    assert bounds.load_by == bounds.efi_by == "subtree"
    assert bounds.load["subtree"] > 1.2 * bounds.load["leaf"]


def two_cliques() -> Fabric:
    """Two times four leaf switches, each four all to all, and one cable between: no levels."""
    builder = FabricBuilder("two cliques")
    for s in range(8):
        builder.add_switch(100 + s, f"s{s}", 40)
    pairs = [(a, b) for b in range(8) for a in range(b) if a // 4 == b // 4]
    for place, (a, b) in enumerate([*pairs, (3, 4)]):
        builder.add_link(a, 10 + place, b, 10 + place)
    for h in range(8):
        builder.add_terminal(1000 + h, f"h{h} HCA-1", f"h{h}", h, 1)
    return builder.build()


def test_an_island_without_levels_is_found() -> None:
    fabric = two_cliques()
    bounds = bounds_of(fabric, JobMix((make_job("1", range(8)),)), rounds=50)
    assert bounds.efi_by == bounds.load_by == "island"
    assert bounds.efi["island"] == 16  # four to four over one cable
    assert bounds.efi["leaf"] < 16
    price = prices_alone(fabric, JobMix((make_job("1", range(8)),)), rounds=50).bound
    assert price == pytest.approx(bounds.load["island"], rel=0.01)
