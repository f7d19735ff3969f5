"""Routes that no job uses, spread over shortest paths independently of the jobs: D-mod-k.

D-mod-k (Zahavi; oblivious-xgft-2009, Section II) on any fabric: terminals are numbered leaf by
leaf, leaf switches that share neighbours one after another, and of the channels
that lead one hop closer a switch takes number (destination's number / product of the choices at the
levels below) modulo their count. On trees that is balanced for all pairs, so that a new job finds
decent routes; and because jobs play no part, a job that starts or ends changes only the entries on
its own paths. O(S) for each terminal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, U32
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, halves
from sar_agent.util.beside import beside
from sar_agent.util.kernels import kernel

MANY = 2**21
"""Fewer entries than these are not worth a second processor."""


class LevelTurns(NamedTuple):
    """The numbers from which each level chooses a channel."""

    terminal: U32
    """uint32[T]: number of each terminal."""
    leaf: U32
    """uint32[S]: number of each leaf switch."""
    level: U8
    """uint8[S]: hops from the nearest leaf switch."""
    stride: U32
    """uint32[levels]: the divisor of a leaf's number at each level."""


def turns_of(fabric: Fabric) -> LevelTurns:
    """The numbers of a fabric, by GUID, so that the order of switches in a file changes no
    route."""
    level = levels_of(fabric)
    up = fabric.channel_up & (level[fabric.channel_target] > level[fabric.channel_source])
    source, target = fabric.channel_source[up], fabric.channel_target[up]
    rank = np.argsort(np.argsort(fabric.switch_guid))
    lowest = np.full(fabric.switches, fabric.switches)
    np.minimum.at(lowest, source, rank[target])
    leaf = np.zeros(fabric.switches, np.uint32)
    leaves = fabric.leaves
    by_neighbour = leaves[np.lexsort((rank[leaves], lowest[leaves]))]
    leaf[by_neighbour] = np.arange(len(leaves))
    order = np.lexsort((fabric.terminal_guid, leaf[fabric.terminal_switch]))
    terminal = np.empty(fabric.terminals, np.uint32)
    terminal[order] = np.arange(fabric.terminals)
    ups = np.bincount(source, minlength=fabric.switches)
    widths = [int(np.median(ups[level == i])) for i in range(1, int(level.max(initial=0)) + 1)]
    stride = np.minimum(np.cumprod([1, 1, *(max(1, w) for w in widths)]), fabric.switches)
    return LevelTurns(terminal, leaf, level, stride.astype(np.uint32))


def spread_trees(
    graph: Graph,
    cache: DagCache,
    turns: LevelTurns,
    root_of: U32,
    last_port: U8,
    dests: U32,
    egress: U8,
) -> None:
    """Fills the rows `dests` (terminals, those of one leaf together) of `egress` uint8[D, S]; if
    these are many entries, a second processor fills half of them."""
    parts = graph, turns, root_of, last_port, egress
    if dests.size * egress.shape[1] < MANY:
        _spread(cache, dests, *parts)
        return
    (cache, mine), (other, others) = halves(cache, root_of[dests])
    with beside(lambda: _spread(other, dests[others], *parts)) as spread:
        _spread(cache, dests[mine], *parts)
        spread()


@kernel
def _spread(
    cache: DagCache,
    dests: U32,
    graph: Graph,
    turns: LevelTurns,
    root_of: U32,
    last_port: U8,
    egress: U8,
) -> None:  # pragma: no cover
    previous = np.int64(-1)
    row = np.uint32(0)
    begin = np.empty(egress.shape[1], np.uint32)
    for d in dests:
        root = root_of[d]
        if root != previous:
            previous = root
            row = dag_row(graph, cache, root)
            for i in range(1, cache.size[row]):
                step = turns.stride[turns.level[cache.order[row, i]]]
                count = cache.start[row, i + 1] - cache.start[row, i]
                begin[i] = (turns.leaf[root] // step) % count
        order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
        tree = egress[d]
        turn = turns.terminal[d]
        for i in range(1, cache.size[row]):
            v = order[i]
            pick = begin[i]
            if turns.level[v] == 0:
                pick = turn % (start[i + 1] - start[i])
            tree[v] = graph.port[edge[start[i] + pick]]
        tree[root] = last_port[d]


def terminal_rows(fabric: Fabric, turns: LevelTurns) -> U32:
    """uint32[·]: live host ports, leaf by leaf."""
    order = np.argsort(turns.terminal)
    return order[fabric.is_host_port[order]].astype(np.uint32)
