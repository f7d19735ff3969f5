"""Repairs tables after the fabric changed: first everything reaches again, then it is bettered.

Every entry is held against the new hop counts. One that still leads one hop closer over a live
cable stays, whatever other entries do; the others move to the channels that are left, spread like
routes that no job uses (`spread.py`). Links or switches gone, back or new, hosts moved: all are
the same question, so there is no list of cases to get wrong.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.dag import U32, Graph
from sar_agent.routing.hops import FAR
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.spread import Turns


def carry_over(before: Fabric, after: Fabric, egress: U8) -> U8:
    """uint8[T + S, S]: the tables of one fabric on the indices of another, by GUID; destinations
    and switches that are new have no route. Always a copy."""
    if np.array_equal(before.switch_guid, after.switch_guid) and np.array_equal(
        before.terminal_guid, after.terminal_guid
    ):
        return egress.copy()
    moved = np.full((after.destinations, after.switches), NO_ROUTE, np.uint8)
    old = np.concatenate([before.terminal_guid, before.switch_guid])
    new = np.concatenate([after.terminal_guid, after.switch_guid])
    _, old_d, new_d = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    _, old_s, new_s = np.intersect1d(
        before.switch_guid, after.switch_guid, assume_unique=True, return_indices=True
    )
    moved[np.ix_(new_d, new_s)] = egress[np.ix_(old_d, old_s)]
    return moved


def neighbours_of(fabric: Fabric) -> U32:
    """uint32[S, ports]: the switch at the other end of each live cable; the switch itself where
    there is none, so that it leads no hop closer."""
    ports = int(fabric.channel_port.max(initial=0)) + 1
    table = np.repeat(np.arange(fabric.switches, dtype=np.uint32)[:, None], ports, axis=1)
    up = fabric.channel_up
    table[fabric.channel_source[up], fabric.channel_port[up]] = fabric.channel_target[up]
    return table


@njit(cache=True)
def mend_rows(
    graph: Graph,
    hops: U8,
    neighbours: U32,
    turns: Turns,
    root_of: U32,
    last_port: U8,
    wanted: Bool,
    egress: U8,
) -> Bool:  # pragma: no cover
    """Mends `egress` uint8[D, S] in place, `wanted` bool[D] rows; returns bool[D], what changed.

    Rows that are not wanted are left alone.
    """
    destinations, switches = egress.shape
    terminals = len(turns.terminal)
    ports = neighbours.shape[1]
    changed = np.zeros(destinations, np.bool_)
    for d in range(destinations):
        if not wanted[d]:
            continue
        root = root_of[d]
        hop = hops[root]
        tree = egress[d]
        for v in range(switches):
            port = np.uint32(tree[v])
            if port < ports and hop[neighbours[v, port]] + 1 == hop[v]:
                continue
            right = np.uint8(NO_ROUTE)
            if v == root:
                right = last_port[d]
            elif hop[v] != FAR:
                turn = np.int64(0)  # switches' own LIDs: the lowest port, as good as any
                if d < terminals:
                    if turns.level[v] == 0:
                        turn = np.int64(turns.terminal[d])
                    else:
                        turn = np.int64(turns.leaf[root] // turns.stride[turns.level[v]])
                right = _closer(graph, hop, v, turn)
            if tree[v] != right:
                tree[v] = right
                changed[d] = True
    return changed


@njit(cache=True)
def _closer(graph: Graph, hop: U8, v: int, turn: np.int64) -> np.uint8:  # pragma: no cover
    """The port of the `turn`-th channel, counted round and round, that leads one hop closer."""
    count = 0
    for c in range(graph.offset[v], graph.offset[v + 1]):
        count += graph.up[c] and hop[graph.target[c]] + 1 == hop[v]
    turn %= count
    for c in range(graph.offset[v], graph.offset[v + 1]):
        if graph.up[c] and hop[graph.target[c]] + 1 == hop[v]:
            if turn == 0:
                return np.uint8(graph.port[c])
            turn -= 1
    return np.uint8(NO_ROUTE)
