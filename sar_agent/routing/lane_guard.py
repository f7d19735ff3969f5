"""Exceptions need no second virtual lane where the template needs none.

No choice among the paths of D-mod-k closes a credit loop, nor among those of most `dfsssp`
templates. On some damaged trees a choice may, although the template's own paths do not. There the
entries to a terminal return to the template if they would close a loop with the template's paths
and with the entries that were examined before them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.channel_dependencies import (
    OffsetTables,
    close_no_loop,
    host_dependencies,
    offset_tables_of,
)
from sar_agent.routing.graph.csr import Graph, channel_graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.routing.graph.two_way_search import LaneOrder, judge, lane_of
from sar_agent.routing.updown_property import rise_then_fall
from sar_agent.util.kernels import kernel


def choice_may_loop(fabric: Fabric, graph: Graph, egress: U8, cache: DagCache) -> bool:
    """Whether these tables close no credit loop between hosts, but others that use paths of `cache`
    may. `cache.place` orders paths of which no choice closes one (`turn_order.py`)."""
    if len(cache.place) or rise_then_fall(fabric, graph, all_hops(graph), between_hosts=True):
        return False
    return close_no_loop(fabric, host_dependencies(fabric, egress))


def closing_loops(fabric: Fabric, template: U8, egress: U8) -> U32:
    """uint32[·]: the host ports to which entries of `egress` uint8[T + S, S] would close a credit
    loop. The template's entries close none. Ports are examined by GUID."""
    net, depends = channel_graph_of(fabric), host_dependencies(fabric, template)
    differ = np.zeros(fabric.destinations, np.bool_)
    differ[: fabric.terminals] = (template != egress)[: fabric.terminals].any(axis=1)
    differ[: fabric.terminals] &= fabric.is_host_port
    tables = offset_tables_of(fabric, egress, None, fabric.terminals_at > 0, differ)
    rows = tables.rows[np.argsort(fabric.terminal_guid[tables.rows])]
    leaves = fabric.leaves[np.argsort(fabric.switch_guid[fabric.leaves])].astype(np.uint32)
    lane = lane_of(net, dependency_order(net, depends), depends)
    closing: U32 = rows[_judged(lane, tables._replace(rows=rows), leaves)]
    return closing


@kernel
def _judged(lane: LaneOrder, tables: OffsetTables, leaves: U32) -> Bool:  # pragma: no cover
    """bool[·]: rows of which a path from `leaves` would close a loop; the dependencies of the
    others are added to the lane."""
    channels, target = len(tables.target), tables.target
    closes = np.zeros(len(tables.rows), np.bool_)
    passed = np.empty(tables.egress.shape[1], np.bool_)
    for k in range(len(tables.rows)):
        d = tables.rows[k]
        tree, root = tables.egress[d], tables.root[d]
        passed[:] = False
        passed[root] = True
        for leaf in leaves:
            v = leaf
            while not passed[v] and not closes[k]:
                passed[v] = True
                c1 = tables.channel_by_port[v, tree[v]]
                if c1 >= channels:
                    break
                v = target[c1]
                if v == root:
                    break
                c2 = tables.channel_by_port[v, tree[v]]
                if c2 < channels and lane.depends[c1, c2 - lane.offset[v]] != PRESENT:
                    closes[k] = not judge(lane, c1, c2)
    return closes
