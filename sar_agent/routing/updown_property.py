"""Do all shortest paths go up, then down? Then no choice among them closes a credit loop.

Each switch has a level. A cycle of dependencies must somewhere turn from a channel that leads down,
or stays level, to one that leads up, or stays level. Whether any shortest path between given
switches has such a turn is computed for all roots at once: each switch has a row of bytes, one byte
for each root, and rows are combined channel by channel, 32 bytes to an instruction: O(C R / 32). No
path is followed.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel, kernel_part


def rise_then_fall(fabric: Fabric, graph: Graph, hops: U8, *, between_hosts: bool = False) -> bool:
    """Whether all shortest paths from hosts to all switches, or to those with hosts, go up, then
    down; `hops` uint8[S, S]."""
    level, hosts = levels_of(fabric), fabric.terminals_at > 0
    by_level = np.argsort(level, kind="stable").astype(np.uint32)
    # Contiguous rows, in either case: one compiled function serves both.
    to_roots = np.ascontiguousarray(hops[:, hosts]) if between_hosts else hops
    return bool(_all_up_then_down(graph, to_roots, level, by_level, hosts))


@kernel
def _all_up_then_down(
    graph: Graph, hops: U8, level: U8, by_level: U32, sends: Bool
) -> bool:  # pragma: no cover
    """Whether all shortest paths from switches that send (`sends` bool[S]) to some roots do so.

    `hops` uint8[S, R] are those from each switch to each root, `level` uint8[S]; `by_level`
    uint32[S] are the switches sorted by level.
    """
    one = np.uint32(1)
    # By switch and root: does a path pass that has only gone up, or one that has gone down already?
    rising = np.zeros(hops.shape, np.bool_)
    falling = np.zeros(hops.shape, np.bool_)
    for v in by_level:
        if sends[v]:
            rising[v] = True
        for c in range(graph.offset[v], graph.offset[v + one]):
            w = graph.target[c]
            if graph.up[c] and level[w] > level[v]:
                _pass_on(hops[v], hops[w], rising[v], rising[w])
    for v in by_level[::-1]:
        passing = rising[v] | falling[v]
        for c in range(graph.offset[v], graph.offset[v + one]):
            w = graph.target[c]
            if not graph.up[c]:
                continue
            if level[w] < level[v]:
                _pass_on(hops[v], hops[w], passing, falling[w])
            elif _any_closer(hops[v], hops[w], falling[v] if level[w] > level[v] else passing):
                return False
    return True


@kernel_part
def _pass_on(
    hops_here: U8, hops_there: U8, passing: Bool, passed: Bool
) -> None:  # pragma: no cover
    """Adds to `passed` the roots of `passing` to which that switch is one hop closer."""
    for root in range(np.uint32(len(hops_here))):
        passed[root] |= passing[root] & (
            hops_here[root] == np.uint8(hops_there[root] + np.uint8(1))
        )


@kernel_part
def _any_closer(hops_here: U8, hops_there: U8, passing: Bool) -> bool:  # pragma: no cover
    any_root = False
    for root in range(np.uint32(len(hops_here))):
        any_root |= passing[root] & (hops_here[root] == np.uint8(hops_there[root] + np.uint8(1)))
    return any_root


@kernel
def lowest_ports(graph: Graph, hops: U8, ports: U8) -> None:  # pragma: no cover
    """Into `ports` uint8[S, S], by switch and root: the lowest port that leads one hop closer; what
    has none is left as it is."""
    for v in range(np.uint32(len(hops))):
        first, last = graph.offset[v], graph.offset[v + np.uint32(1)]
        hops_here, row = hops[v], ports[v]
        for back in range(last - first):
            c = last - np.uint32(1) - np.uint32(back)
            if graph.up[c]:
                _take_port(hops_here, hops[graph.target[c]], np.uint8(graph.port[c]), row)


@kernel_part
def _take_port(hops_here: U8, hops_there: U8, port: np.uint8, row: U8) -> None:  # pragma: no cover
    """Writes the port where that switch is one hop closer."""
    for root in range(np.uint32(len(hops_here))):
        closer = np.uint8(hops_here[root] == np.uint8(hops_there[root] + np.uint8(1)))
        row[root] ^= (row[root] ^ port) & np.uint8(np.uint8(0) - closer)
