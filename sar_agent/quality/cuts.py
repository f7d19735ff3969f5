"""Lower bounds from cuts: the traffic that leaves a set of switches shares the channels there.

A cut holds for every routing, minimal or not: a route that crosses twice still crosses. As much
traffic leaves a set as enters it, since every two terminals of a job send to each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_below
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import I32, U32
from sar_agent.quality.job_spread import F64, JobSpread
from sar_agent.routing.graph.csr import Graph
from sar_agent.util.kernels import kernel

STARTS = 8
"""The number of orders that `island_cut` tries, each from another leaf switch."""

Cut = tuple[float, float]
"""The least possible maximum of (effective EFI, not yet rounded; load); 0 without jobs."""


def leaf_cut(fabric: Fabric, spread: JobSpread) -> Cut:
    """The best cut around a single leaf switch."""
    return _around(fabric, spread, np.arange(fabric.switches))


def subtree_cut(fabric: Fabric, spread: JobSpread) -> Cut:
    """The best cut around a piece that remains when the upper levels are removed, for every level.

    A switch's level is its distance from the nearest leaf switch: on a fat tree the pieces are
    its subtrees, in a hall of directors the directors.
    """
    level = levels_of(fabric)
    cuts = [
        _around(fabric, spread, components_below(fabric, level, highest))
        for highest in range(level.max(initial=0))
    ]
    return _best(cuts)


def island_cut(fabric: Fabric, spread: JobSpread, graph: Graph) -> Cut:
    """Around sets that grow from a leaf switch, always by the switch with most channels into the
    set (as in Stoer and Wagner's minimum cut), so that a well-knit part is full before the set
    leaves it: finds islands where there are no levels to tell them by."""
    rate = fabric.channel_rate.astype(np.float64)
    reverse = fabric.channel_reverse.astype(np.uint32)
    place = np.full(fabric.switches, -1, np.int32)
    place[spread.leaf] = np.arange(len(spread.leaf))
    first = spread.leaf[:: max(1, len(spread.leaf) // STARTS)][:STARTS]
    return _best([_grown(graph, rate, reverse, spread, place, s) for s in first])


def _best(cuts: list[Cut]) -> Cut:
    return max((c[0] for c in cuts), default=0.0), max((c[1] for c in cuts), default=0.0)


def _around(fabric: Fabric, spread: JobSpread, group: NDArray[np.integer]) -> Cut:
    """The best cut around a group of switches; `group` is int[S]."""
    if not len(spread.size):
        return 0.0, 0.0
    both, place = np.unique(
        spread.job * np.int64(fabric.switches) + group[spread.switch], return_inverse=True
    )
    job, home = np.divmod(both, fabric.switches)
    inside = np.bincount(place, spread.terminals)
    crossing = inside * (spread.size[job] - inside)
    source, target = group[fabric.channel_source], group[fabric.channel_target]
    cut = fabric.channel_up & (source != target)

    def total(of: NDArray[np.integer], what: NDArray[np.floating] | None = None) -> F64:
        return np.bincount(of, what, fabric.switches).astype(np.float64)

    rate = fabric.channel_rate[cut]
    least = np.minimum(total(source[cut], rate), total(target[cut], rate))
    efi = _ratio(total(home, crossing), total(source[cut]))
    load = _ratio(total(home, crossing * spread.demand[job]), least)
    return float(efi.max()), float(load.max())


def _ratio(above: F64, below: F64) -> F64:
    """The quotients, 0 where no channel leaves the set: such routes do not exist."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


@kernel
def _grown(
    graph: Graph, rate: F64, reverse: U32, spread: JobSpread, place: I32, first: int
) -> Cut:  # pragma: no cover
    """The best cut around any set while the set grows from {first} to all switches; `place[s]` is
    the index of a switch in `spread.leaf`, -1 for others."""
    taken = np.zeros(len(graph.rank), np.bool_)
    into = np.zeros(len(graph.rank), np.uint32)  # channels from the set to each switch
    # Switches by `into`, in queues of the channels that raised it; stale entries are skipped.
    # Queues are first in, first out: a stack would climb to the spines before a subtree is
    # complete.
    head = np.full(len(graph.up) + 1, -1, np.int64)
    tail = np.empty(len(head), np.uint32)
    rest = np.full(len(graph.up), -1, np.int64)
    inside = np.zeros(len(spread.size))
    routes = load = channels = rate_out = rate_in = best_efi = best_load = 0.0
    v, most = np.uint32(first), np.uint32(0)
    while True:
        taken[v] = True
        for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
            w = graph.target[c]
            if not graph.up[c] or w == v:
                continue
            if taken[w]:
                channels -= 1.0
                rate_out -= rate[reverse[c]]
                rate_in -= rate[c]
                continue
            channels += 1.0
            rate_out += rate[c]
            rate_in += rate[reverse[c]]
            into[w] += np.uint32(1)
            if head[into[w]] < 0:
                head[into[w]] = c
            else:
                rest[tail[into[w]]] = c
            tail[into[w]] = c
            most = max(most, into[w])
        if place[v] >= 0:
            b = np.uint32(place[v])
            for i in range(spread.at[b], spread.at[b + np.uint32(1)]):
                j, n = spread.job[spread.entry[i]], spread.terminals[spread.entry[i]]
                crossing = n * (spread.size[j] - n - 2.0 * inside[j])
                inside[j] += n
                routes += crossing
                load += crossing * spread.demand[j]
        if channels > 0.0:
            best_efi = max(best_efi, routes / channels)
            best_load = max(best_load, load / min(rate_out, rate_in))
        while most > 0:
            e = head[most]
            if e < 0:
                most -= np.uint32(1)
                continue
            w = graph.target[np.uint32(e)]
            head[most] = rest[np.uint32(e)]
            if not taken[w] and into[w] == most:
                v = w
                break
        if taken[v]:
            return best_efi, best_load
