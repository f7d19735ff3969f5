"""Tables in one lane where some leaf switches of what resembles a tree share no root: sites whose
rails meet only at storage leaves, or whose storage leaves share no core.

Up*/Down* paths (`updown_paths.py`) are compared by how evenly traffic between all hosts loads the
channels, for several orders of the switches: distances from what seem to be the roots, levels above
several kinds of leaf switches (`turn_order.py`), with switches lifted that join leaf switches which
share no root (`root_sets.py`). Where none of these joins all, hops from the switch that is nearest
to all leaf switches, which serve any connected fabric, but turn everything around that switch.

A few switches that join the parts of such a site carry most of its traffic, so not destinations
are counted, as on trees, but routes: each tree is grown at least weight, and every host's route
raises the weights, as in DFSSSP. O(S + C) for each terminal and candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.destination_order import leaf_by_leaf
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.root_sets import joining_order
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.updown_paths import (
    Orientation,
    RootDistances,
    legal_tree,
    new_row,
    orient,
    unreached_leaves,
)
from sar_agent.util.kernels import kernel


def even_tables(fabric: Fabric, graph: Graph, places: Sequence[I32]) -> U8:
    """uint8[T + S, S]: egress ports to host ports, `NO_ROUTE` elsewhere, by the best of these
    `places` int32[S] of the switches. (The largest number of routes alone is often that of a cable
    which all orders share, so the cubes of all channels' numbers are summed.)"""

    def crowding(candidate: tuple[U8, I64]) -> float:
        return float((candidate[1].astype(np.float64) ** 3).sum())

    legal = (legal_tables(fabric, graph, way) for way in legal_orders(fabric, graph, places))
    return min(legal, key=crowding)[0]


def legal_orders(fabric: Fabric, graph: Graph, places: Sequence[I32]) -> list[Orientation]:
    """Orientations under which all leaf switches reach each other; at least one."""
    leaves, row = fabric.leaves.astype(np.uint32), new_row(fabric)
    orders = (orient(fabric, joining_order(fabric, place)) for place in places)
    found = [each for each in orders if unreached_leaves(graph, each, row, leaves)[0] < 0]
    return found or [orient(fabric, around(fabric, graph))]


def around(fabric: Fabric, graph: Graph) -> I64:
    """int64[S]: heights by hops from the switch that is nearest to all leaf switches."""
    hops = all_hops(graph).astype(np.int64)
    distance = np.where(fabric.switch_up, hops[:, fabric.leaves].sum(axis=1), hops.sum() + 1)
    heights: I64 = -hops[np.lexsort((fabric.switch_guid, distance))[0]]
    return heights


def legal_tables(fabric: Fabric, graph: Graph, legal: Orientation) -> tuple[U8, I64]:
    """Tables by the legal paths of least weight, and int64[C], the routes on each channel."""
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    weight = np.zeros(fabric.channels, np.int64)
    order = leaf_by_leaf(fabric)[: fabric.terminals]
    _grow_legal(
        graph,
        legal,
        new_row(fabric),
        fabric.destination_switch.astype(np.uint32),
        fabric.destination_port,
        order[fabric.is_host_port[order]],
        fabric.terminals_at.astype(np.int64),
        weight,
        egress,
    )
    return egress, weight


@kernel
def _grow_legal(
    graph: Graph,
    legal: Orientation,
    row: RootDistances,
    root_of: U32,
    last_port: U8,
    dests: U32,
    sends: I64,
    weight: I64,
    egress: U8,
) -> None:  # pragma: no cover
    """Fills the rows `dests` (those of one leaf switch together) of `egress` uint8[D, S] with the
    shortest legal paths of least weight; `weight` int64[C] counts the routes of the hosts, of which
    there are `sends` int64[S] at each switch."""
    switches = egress.shape[1]
    cost, routes = np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    via = np.zeros(switches, np.uint32)
    one = np.uint32(1)
    for d in dests:
        root, tree = root_of[d], egress[d]
        legal_tree(graph, legal, row, root, last_port[d], tree)
        size = row.size[0]
        cost[root] = 0
        for i in range(one, size):
            v = row.order[i]
            best = row.edge[row.start[i]]
            least = weight[best] + cost[graph.target[best]]
            for e in range(row.start[i] + one, row.start[i + one]):
                c = row.edge[e]
                price = weight[c] + cost[graph.target[c]]
                if price < least:
                    best = c
                    least = price
            cost[v] = least
            via[v] = best
            tree[v] = graph.port[best]
            routes[v] = sends[v]
        for back in range(one, size):
            v = row.order[size - np.uint32(back)]
            weight[via[v]] += routes[v]
            routes[graph.target[via[v]]] += routes[v]
