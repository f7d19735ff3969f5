"""Lower bounds from prices, for cases where no simple cut is tight.

Give every channel a price. Every route of a minimal-hop routing costs at least the cheapest
minimal-hop path between its ends; the sum over all routes is at most the largest load times the
price of all channels, each times its capacity. So for any prices y >= 0

    max load >= sum of demand x cheapest minimal-hop path / sum of y x capacity,

and by linear programming duality the best prices give the largest load of the best *fractional*
minimal-hop routing: no argument that allows routes to be split proves more.

Good prices are those of congestion. A fractional routing is improved by flow deviation (Fratta,
Gerla, Kleinrock 1973): price channels by exp(load / temperature), shift as much traffic to the
cheapest paths as lowers the sum of all prices; once little can be shifted, lower the temperature.
Each round takes one pass over the DAG of every destination leaf and yields a bound; the best bound
is kept, and the routing's own largest load shows when no better bound is possible.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.quality.job_spread import F64, JobSpread, add_sources
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.util.kernels import kernel

# By trial on five real fabrics and three trees: 32 rounds come within 2 % of the best prices.
FIRST_TEMPERATURE, LEAST_TEMPERATURE = 0.1, 0.02
"""The first and the least temperature, as a share of the largest load."""
FIRST_TIE, LEAST_TIE = 0.5, 1e-3
"""Paths that cost more than the cheapest by less than this share take traffic, too, at first and at
last: ties are the rule on fat trees, and arbitrary choices would shift all traffic from path to
path."""
COOLING = 0.7
"""Temperature and tie shrink by this factor when ..."""
LEAST_SHIFT = 0.002
"""... a round shifted less than this share of the traffic."""
RELATIVE_GAP = 1e-3
"""The relative distance of the bound and the fractional routing's load at which rounds end."""


class PriceBound(NamedTuple):
    """A lower bound on the largest load of every minimal-hop routing, from prices."""

    bound: float
    fractional: float
    """The largest load of the best fractional routing found; no prices prove more than this."""


def price_bound(
    fabric: Fabric,
    spread: JobSpread,
    graph: Graph,
    cache: DagCache,
    weight: F64,
    capacity: F64,
    rounds: int,
    seconds: float = np.inf,
    known: float = 0.0,
) -> PriceBound:
    """The best bound of at most `rounds` rounds within `seconds`, at least one. Rounds also end
    where prices cannot prove more than `known`, another lower bound.

    `weight` is float64[J], the weight of a route of each job; `capacity` is float64[C]. Ones bound
    the effective EFI; `spread.demand` and rates in Gbit/s bound the load.
    """
    until = perf_counter() + seconds
    capacity = capacity * fabric.channel_up
    share = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)
    load, bound, fractional = np.zeros_like(share), 0.0, np.inf
    temperature, near = FIRST_TEMPERATURE, FIRST_TIE
    for round in range(rounds):
        # The first prices are equal, so that traffic spreads over all shortest paths.
        top = load.max(initial=0.0)
        heat = temperature * top / np.log(1.0 + len(load)) if round else 1.0
        price = share * np.exp((load - top) / heat)
        flow = np.zeros_like(share)
        total = cheapest(graph, cache, spread, weight, price, near, flow)
        if total == 0.0:
            return PriceBound(0.0, 0.0)
        bound = max(bound, total / float(price @ capacity))
        change = flow * share - load
        step = _step(load, change, heat) if round else 1.0
        load += step * change
        fractional = min(fractional, float(load.max()))
        if max(bound, known) >= (1.0 - RELATIVE_GAP) * fractional or perf_counter() > until:
            break
        if step < LEAST_SHIFT:
            temperature = max(LEAST_TEMPERATURE, temperature * COOLING)
            near = max(LEAST_TIE, near * COOLING)
    return PriceBound(bound, fractional)


@kernel
def cheapest(
    graph: Graph,
    cache: DagCache,
    spread: JobSpread,
    weight: F64,
    price: F64,
    near: float,
    flow: F64,
) -> float:  # pragma: no cover
    """The cost of all routes on their cheapest minimal-hop paths. Adds their traffic to `flow`, at
    each switch in equal parts over the channels that cost at most `1 + near` times the least."""
    cost = np.zeros(len(graph.rank))
    amount = np.empty_like(cost)
    total = 0.0
    for b in range(np.uint32(len(spread.leaf))):
        root = spread.leaf[b]
        row = dag_row(graph, cache, root)
        size, order = cache.size[row], cache.order[row]
        start, edge = cache.start[row], cache.edge[row]
        amount[:] = 0.0
        add_sources(spread, b, weight, amount)
        cost[root] = 0.0
        for i in range(np.uint32(1), size):
            least = np.inf
            for e in range(start[i], start[i + np.uint32(1)]):
                least = min(least, price[edge[e]] + cost[graph.target[edge[e]]])
            cost[order[i]] = least
            total += amount[order[i]] * least
        for back in range(np.uint32(1), size):
            i = size - np.uint32(back)
            v = order[i]
            if amount[v] == 0.0:
                continue
            limit, ways = cost[v] * (1.0 + near), 0.0
            for e in range(start[i], start[i + np.uint32(1)]):
                ways += price[edge[e]] + cost[graph.target[edge[e]]] <= limit
            for e in range(start[i], start[i + np.uint32(1)]):
                c = edge[e]
                if price[c] + cost[graph.target[c]] <= limit:
                    flow[c] += amount[v] / ways
                    amount[graph.target[c]] += amount[v] / ways
    return total


@kernel
def _step(load: F64, change: F64, heat: float) -> float:  # pragma: no cover
    """The share of `change`, 0 … 1, with the least sum of exp(load / heat), by bisection."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        top = -np.inf
        for c in range(len(load)):
            top = max(top, load[c] + middle * change[c])
        slope = 0.0
        for c in range(len(load)):
            slope += change[c] * np.exp((load[c] + middle * change[c] - top) / heat)
        if slope < 0.0:
            low = middle
        else:
            high = middle
    return low
