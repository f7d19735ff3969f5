"""Tables on a fabric that changed: every destination is reachable, and few entries differ.

An entry that still leads along the paths of the new fabric stays, whatever other entries do; the
others become those of its template. Links or switches that are gone, back or new, and hosts that
moved, are all the same question, so there is no list of cases to get wrong.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.align import align
from sar_agent.fabric.model import U8, U32
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.kernels import kernel


def same_indices(before: Fabric, after: Fabric) -> bool:
    """Whether switches and terminals have the same indices in both."""
    return np.array_equal(before.switch_guid, after.switch_guid) and np.array_equal(
        before.terminal_guid, after.terminal_guid
    )


def carry_over(before: Fabric, after: Fabric, egress: U8) -> U8:
    """uint8[T + S, S]: the tables of one fabric on the indices of another, by GUID; destinations
    and switches that are new have no route. The array itself where the indices are the same."""
    if same_indices(before, after):
        return egress
    moved = np.full((after.destinations, after.switches), NO_ROUTE, np.uint8)
    at = align(after.nodes, before.nodes)
    moved[np.ix_(at.ours_d, at.ours_s)] = egress[np.ix_(at.theirs_d, at.theirs_s)]
    return moved


def carried_tables(fabric: Fabric, egress: U8, cache: DagCache, wanted: U8) -> U8:
    """uint8[T + S, S]: of the entries of `egress` (`carry_over`) to host ports those stay that lead
    along the paths that `cache` keeps; all others are those of `wanted`."""
    tables = egress.copy()
    rows = np.zeros(fabric.destinations, np.bool_)
    rows[: fabric.terminals] = fabric.is_host_port
    tables[~rows] = wanted[~rows]
    by_leaf = np.argsort(fabric.destination_switch, kind="stable")
    _keep_leading(
        graph_of(fabric),
        cache,
        fabric.destination_switch.astype(np.uint32),
        by_leaf[rows[by_leaf]].astype(np.uint32),
        wanted,
        tables,
    )
    return tables


@kernel
def _keep_leading(
    graph: Graph, cache: DagCache, root_of: U32, rows: U32, wanted: U8, egress: U8
) -> None:  # pragma: no cover
    """Replaces the entries of `rows` (those of one switch together) that do not lead along the
    cache's paths by those of `wanted`. O(rows · channels of the paths)."""
    switches, one = egress.shape[1], np.uint32(1)
    leads = np.zeros((switches, 256), np.bool_)
    previous = np.int64(-1)
    for d in rows:
        root = root_of[d]
        row = dag_row(graph, cache, root)
        if root != previous:
            previous = np.int64(root)
            leads[:] = False
            for i in range(cache.size[row]):
                v = cache.order[row, i]
                for e in range(cache.start[row, i], cache.start[row, i + one]):
                    leads[v, graph.port[cache.edge[row, e]]] = True
        for v in range(switches):
            if not leads[v, egress[d, v]]:
                egress[d, v] = wanted[d, v]
