"""The least possible dark fiber: channels that every minimal-hop routing leaves unused.

There are three reasons: a channel lies on no shortest path between two leaf switches of one job; a
switch sends to fewer destinations than it has such channels (a table holds one egress port for
each); all routes together, even if no two shared a channel, have fewer hops than there are
channels.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32
from sar_agent.jobs import JobMix
from sar_agent.quality.job_spread import F64, JobSpread, spread_of
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.util.kernels import kernel, kernel_part


def least_dark_fiber(fabric: Fabric, mix: JobMix) -> float:
    """The share of live channels that every minimal-hop routing leaves dark; 0 without channels."""
    live = fabric.channel_source[fabric.channel_up]
    if not len(live):
        return 0.0
    # Each DAG is read once, so one row serves them all and stays in the processor's cache.
    cache = new_cache(fabric)._replace(slot=np.zeros(fabric.switches, np.uint32))
    used = _most_used(
        graph_of(fabric),
        cache,
        spread_of(fabric, mix),
        len(live),
        fabric.channel_source.astype(np.uint32),
        fabric.channel_reverse.astype(np.uint32),
    )
    return 1.0 - used / len(live)


@kernel
def _most_used(
    graph: Graph, cache: DagCache, spread: JobSpread, live: int, source: U32, reverse: U32
) -> float:  # pragma: no cover
    """The largest number of the `live` channels that can carry routes at once."""
    switches = len(graph.rank)
    marked = np.zeros(len(source), np.bool_)
    usable = np.zeros(switches)  # channels on shortest paths, by switch
    trees = np.zeros(switches)  # terminals that a switch may send to
    own, to, hop = np.empty(switches), np.empty(switches), np.empty(switches)
    for i in range(len(spread.job)):
        trees[spread.switch[i]] += spread.size[spread.job[i]] - spread.terminals[i]
    hops = 0.0
    for b in range(np.uint32(len(spread.leaf))):
        root = spread.leaf[b]
        row = dag_row(graph, cache, root)
        size, order = cache.size[row], cache.order[row]
        start, edge = cache.start[row], cache.edge[row]
        own[:] = 0.0
        everyone = 0.0
        for k in range(spread.at[b], spread.at[b + np.uint32(1)]):
            target = spread.entry[k]
            j = spread.job[target]
            everyone += spread.terminals[target]
            for sender in range(spread.offset[j], spread.offset[j + np.uint32(1)]):
                if sender != target:
                    own[spread.switch[sender]] += spread.terminals[target]
        for v in range(switches):
            to[v] = own[v]
        hop[root] = 0.0
        for i in range(np.uint32(1), size):
            hop[order[i]] = hop[graph.target[edge[start[i]]]] + 1.0
            hops += own[order[i]] * hop[order[i]]
        for back in range(np.uint32(1), size):
            i = size - np.uint32(back)
            v = order[i]
            if to[v] == 0.0:
                continue
            to[v] = min(to[v], everyone)  # several sources may send to the same
            trees[v] += to[v] - own[v]
            for e in range(start[i], start[i + np.uint32(1)]):
                c = edge[e]
                to[graph.target[c]] += to[v]
                # The way back between the two leaves uses the cable's other direction.
                for d in (c, reverse[c]):
                    if not marked[d]:
                        marked[d] = True
                        usable[source[d]] += 1.0
        if hops >= live and _of_both(usable, trees) >= live:
            break  # nothing must stay dark: the rule where many jobs run
    return float(min(hops, _of_both(usable, trees)))


@kernel_part
def _of_both(usable: F64, trees: F64) -> float:  # pragma: no cover
    total = 0.0
    for v in range(len(usable)):
        total += min(usable[v], trees[v])
    return total
