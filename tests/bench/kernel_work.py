"""The amount of work of the kernels: relaxations, and the reuse of cached DAGs."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar_plus_balance import RouteBalance
from sar_agent.routing.shortest_paths import ShortestPaths


def relaxations(fabric: Fabric) -> int:
    """The number of channels one hop closer, over all host ports as destinations: the iterations of
    DFSSSP's inner loop."""
    hops = all_hops(graph_of(fabric)).astype(np.int16)
    source, target = (
        channels[fabric.channel_up] for channels in (fabric.channel_source, fabric.channel_target)
    )
    return sum(
        int(fabric.terminals_at[leaf])
        * int(np.count_nonzero(hops[leaf, source] == hops[leaf, target] + 1))
        for leaf in fabric.leaves
    )


def dag_hits(fabric: Fabric, mix: JobMix) -> float:
    """The share of `sar-plus`'s trees whose DAG is already in the cache when they first grow."""
    shape = (fabric.destinations, fabric.switches)
    tables = np.broadcast_to(np.uint8(NO_ROUTE), shape)
    balance = RouteBalance(ShortestPaths(fabric), mix, tables, "load")
    held: dict[int, int] = {}
    hits = 0
    roots = fabric.terminal_switch[balance.terminals].tolist()
    for root in roots:
        row = int(balance.cache.slot[root])
        hits += held.get(row) == root
        held[row] = root
    return hits / max(1, len(roots))
