"""In which order a destination's switches are priced: a *sweep* for each destination switch.

Hop by hop, so that all that a switch may forward to is priced before it. Within one hop first the
siblings all of whose ways lead up (`siblings.py`), group by group, then the others, each with the
channels that lead one hop closer. Hops are known (`hops.py`), so no search is needed, and only what
is not among siblings takes room: 10 KB a destination at 1,620 switches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric.model import I32, U8
from sar_agent.routing.dag import U32, Graph
from sar_agent.routing.hops import FAR
from sar_agent.routing.siblings import ALONE, Siblings

ARENA_WORDS = 32 << 20
"""Room for sweeps: 128 MB, of which only what is written to is taken from the machine."""
NOT_YET = np.uint32(0xFFFFFFFF)


class Sweeps(NamedTuple):
    """Sweeps so far. One is, at `begin[root]` of `arena`: how many switches there are but the root;
    each as switch << 8 | port, that port towards the lowest GUID one hop closer; then runs of them:
    group, length of run, and for group `ALONE` for each switch how many channels, and these.
    """

    begin: U32
    """uint32[S]"""
    arena: U32
    used: U32
    """uint32[1]"""
    by_group: U32
    """uint32[S]: switches, siblings side by side."""
    bucket: I32
    """int32[·], scratch: for each hop, twice."""
    covered: U8
    """uint8[S], scratch."""


def new_sweeps(graph: Graph, siblings: Siblings) -> Sweeps:
    """None so far."""
    switches = len(siblings.group)
    words = max(ARENA_WORDS, 4 * switches + len(graph.target))
    return Sweeps(
        np.full(switches, NOT_YET, np.uint32),
        np.empty(words, np.uint32),
        np.zeros(1, np.uint32),
        np.lexsort((siblings.lane, siblings.group)).astype(np.uint32),
        np.empty(2 * FAR + 3, np.int32),
        np.empty(switches, np.uint8),
    )


@njit(cache=True)
def sweep_of(
    graph: Graph, siblings: Siblings, sweeps: Sweeps, hop: U8, busy: U32, root: int
) -> np.uint32:  # pragma: no cover
    """Where `root`'s sweep begins, made if need be. `hop` uint8[S] are the hops to it; for switches
    that are `busy` anyway nobody asks for the port towards the lowest GUID."""
    begin: np.uint32 = sweeps.begin[root]
    if begin != NOT_YET:
        return begin
    one = np.uint32(1)
    switches = np.uint32(len(hop))
    if sweeps.used[0] + 4 * switches + len(graph.target) > len(sweeps.arena):
        sweeps.begin[:] = NOT_YET
        sweeps.used[0] = 0
    begin = sweeps.used[0]
    arena, bucket, covered = sweeps.arena, sweeps.bucket, sweeps.covered
    bucket[:] = 0
    for v in range(switches):
        if hop[v] == FAR:
            continue
        alone = siblings.group[v] == ALONE
        if not alone:
            for q in range(siblings.outside[v], siblings.outside[v + one]):
                alone = alone or hop[graph.target[siblings.channel[q]]] + 1 == hop[v]
        covered[v] = not alone
        bucket[2 * hop[v] + 1 + alone] += 1
    last = np.uint32(0)
    for b in range(1, len(bucket)):
        if bucket[b]:
            last = np.uint32(b)
        bucket[b] += bucket[b - 1]
    size = np.uint32(bucket[last] - 1)
    arena[begin] = size
    order = arena[begin : begin + one + size]  # the root's own place holds the size
    for u in sweeps.by_group:
        if hop[u] == FAR or u == root:
            continue
        b = 2 * hop[u] + np.uint32(not covered[u])
        order[bucket[b]] = u << np.uint32(8)
        bucket[b] += 1
    at = begin + one + size
    i = one
    while i <= size:
        u = order[i] >> np.uint32(8)
        group = siblings.group[u] if covered[u] else ALONE
        h = hop[u]
        header = at
        at += np.uint32(2)
        count = np.uint32(0)
        while i <= size:
            u = order[i] >> np.uint32(8)
            if hop[u] != h or (siblings.group[u] if covered[u] else ALONE) != group:
                break
            if group == ALONE:
                channels = at
                at += one
                low = NOT_YET
                for c in range(graph.offset[u], graph.offset[u + one]):
                    w = graph.target[c]
                    if graph.up[c] and hop[w] + 1 == h:
                        arena[at] = c
                        at += one
                        if low == NOT_YET or graph.rank[w] < graph.rank[graph.target[low]]:
                            low = np.uint32(c)
                arena[channels] = at - channels - one
                order[i] |= graph.port[low]
            elif not busy[u]:
                order[i] |= _lowest(siblings, hop, group, u)
            i += one
            count += one
        arena[header] = group
        arena[header + one] = count
    sweeps.used[0] = at
    sweeps.begin[root] = begin
    return begin


@njit(cache=True)
def _lowest(
    siblings: Siblings, hop: U8, group: np.uint32, v: np.uint32
) -> np.uint8:  # pragma: no cover
    """Port of a covered switch towards its lowest neighbour one hop closer."""
    at = siblings.first[group] + siblings.lane[v]
    for k in range(siblings.slot[group], siblings.slot[group + np.uint32(1)]):
        if siblings.port[at] and hop[siblings.target[k]] + 1 == hop[v]:
            return np.uint8(siblings.port[at])
        at += siblings.size[group]
    return np.uint8(0)
