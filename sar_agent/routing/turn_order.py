"""An order of the switches by which nearly all shortest paths go up, then down.

Paths that turn once, at their highest switch, close no credit loop in one lane
(`updown_paths.py`). On a tree any order by level does. Real trees have management switches below
leaf switches, storage below several trees, hosts at spines, and cables that are gone: some pairs of
leaf switches then have no shortest path that turns once, and free choice takes paths that turn on a
leaf, for which the whole fabric would pay with a second lane. Here levels are tried for several
ideas of what a leaf is. A pair without a path that turns once keeps one that turns more often; that
may still close no loop, which is examined for all paths together. If it does, switches on which
such paths turn are *lifted* above all others, one at a time, as long as that leaves fewer: a leaf
between two trees is a root for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_above
from sar_agent.fabric.model import I32, I64, U8, U32
from sar_agent.fabric.tree import tree_levels
from sar_agent.routing.channel_dependencies import empty_dependencies
from sar_agent.routing.graph.csr import Graph, channel_graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.graph.shortest_path_dag import TURNS, DagCache, dag_row, new_cache
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.routing.root_sets import heights_below_roots
from sar_agent.util.kernels import kernel

LEAF_CABLES = 0.2
"""Share of the cables that join two leaf switches where the fabric is no tree at all: tori and
Dragonflies are not examined further."""
IDEAS_OF_LEAVES = 4
LIFTED = 16
"""The most switches that are lifted."""
LIFTS_TRIED = 4
"""How many switches are tried for each that is lifted."""
WORD, BIT = np.uint32(64), np.uint64(1)


def turn_order(fabric: Fabric, graph: Graph) -> I32 | None:
    """int32[S], the place of each switch: of all paths that `DagCache` keeps for it, no choice
    closes a credit loop between hosts. None where no such order was found."""
    found = (order.place for order in turn_orders(fabric, graph) if not order.loop)
    return next(found, None)


def turn_orders(fabric: Fabric, graph: Graph) -> Iterator[TurnOrder]:
    """Orders of the switches, best first; then ever fewer pairs turn more than once. None where
    the fabric resembles no tree."""
    examined = _examiner(fabric, graph)
    heights = sorted(map(examined, places_by_height(fabric, graph)), key=TurnOrder.rank)
    yield from heights
    best = min(heights, key=lambda order: order.pairs, default=None)
    for _ in range(LIFTED if best else 0):
        assert best
        often = np.lexsort((graph.rank, -best.turns))[:LIFTS_TRIED]
        lifts = [_lifted(best.place, s) for s in often[best.turns[often] > 0].tolist()]
        better = min(map(examined, lifts), key=TurnOrder.rank, default=best)
        if better.pairs >= best.pairs:
            break
        best = better
        yield best


def places_by_height(fabric: Fabric, graph: Graph) -> list[I32]:
    """int32[S] each, those of `turn_orders` before any switch is lifted; none where the fabric
    resembles no tree."""
    places = [_place_of(fabric, graph, height) for height in heights_of(fabric, graph)]
    return list({place.tobytes(): place for place in places}.values())


def _examiner(fabric: Fabric, graph: Graph) -> Callable[[I32], TurnOrder]:
    """What becomes of the shortest paths under an order int32[S]."""
    cache = new_cache(fabric)._replace(slot=np.zeros(fabric.switches, np.uint32))
    net, leaves = channel_graph_of(fabric), fabric.leaves.astype(np.uint32)

    def examined(place: I32) -> TurnOrder:
        cache.tag[:] = -1
        depends, turns = empty_dependencies(fabric, 1)[0], np.zeros(fabric.switches, np.int64)
        counts = _examine(graph, cache._replace(place=place), leaves, turns, depends)
        loop = counts[0] > 0 and len(dependency_order(net, depends)) < fabric.channels
        return TurnOrder(bool(loop), int(counts[0]), -int(counts[1]), place, turns)

    return examined


class TurnOrder(NamedTuple):
    """An order of the switches, and what became of the shortest paths."""

    loop: bool
    """Whether the paths that are kept may close one."""
    pairs: int
    """Ordered pairs of leaf switches whose paths turn more than once."""
    left_out: int
    """Minus the channels on shortest paths that are kept, over all roots."""
    place: I32
    """int32[S]"""
    turns: I64
    """int64[S]: how many of the pairs' paths turn up at each switch."""

    def rank(self) -> tuple[bool, int, int]:
        """Less is better."""
        return self.loop, self.pairs if self.loop else 0, self.left_out


def heights_of(fabric: Fabric, graph: Graph) -> Iterator[NDArray[np.integer]]:
    """int[S]: heights of the switches, under several ideas of what a leaf switch is: levels above
    the leaf switches, and distances from what seem to be the roots. Nothing where the fabric
    resembles no tree."""
    with suppress(Unserved):
        yield tree_levels(fabric)
    source = fabric.channel_source[fabric.channel_up]
    target = fabric.channel_target[fabric.channel_up]
    hosts = np.unique(fabric.terminals_at[fabric.leaves])
    few = np.linspace(0, len(hosts) - 1, IDEAS_OF_LEAVES).round().astype(int)
    levels = []
    hops = all_hops(graph)
    for least in hosts[np.unique(few)].tolist() if len(hosts) else []:
        level = levels_above(fabric, np.flatnonzero(fabric.terminals_at >= least))
        if ((level[source] == 0) & (level[target] == 0)).sum() <= LEAF_CABLES * len(source):
            yield from heights_below_roots(fabric, hops, least)
            levels.append(level)
    yield from levels


def _place_of(fabric: Fabric, graph: Graph, height: NDArray[np.integer]) -> I32:
    """int32[S]: by height, then by number of cables, then by GUID."""
    cables = np.bincount(fabric.channel_source[fabric.channel_up], minlength=fabric.switches)
    place = np.empty(fabric.switches, np.int32)
    place[np.lexsort((graph.rank, cables, height))] = np.arange(fabric.switches)
    return place


def _lifted(place: I32, switch: int) -> I32:
    above: I32 = (place - (place > place[switch])).astype(np.int32)
    above[switch] = len(place) - 1
    return above


@kernel
def _examine(
    graph: Graph, cache: DagCache, leaves: U32, turns: I64, depends: U8
) -> tuple[np.int64, np.int64]:  # pragma: no cover
    """Counts the ordered pairs of `leaves` whose path turns more than once, and the channels that
    the cache keeps; `turns` int64[S] counts the switches at which these paths turn up. Sets
    `depends` uint8[C, W] for what the kept paths between leaves make wait."""
    one = np.uint32(1)
    pairs = kept = np.int64(0)
    at = np.zeros(len(turns), np.uint32)
    passed = np.zeros(len(turns), np.bool_)
    place = cache.place
    # Bit r of a switch: its channel of rank r leads closer to the root; of a channel: such a one
    # follows.
    words = np.uint32((depends.shape[1] + 63) // 64)
    closer = np.zeros((len(turns), words), np.uint64)
    follow = np.zeros((len(depends), words), np.uint64)
    for root in leaves:
        row = dag_row(graph, cache, root)
        order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
        kept += np.int64(start[cache.size[row]])
        passed[:] = False
        passed[leaves] = True
        for i in range(cache.size[row]):
            v = order[i]
            at[v] = i
            closer[v] = 0
            for e in range(start[i], start[i + one]):
                rank = edge[e] - graph.offset[v]
                closer[v, rank // WORD] |= BIT << np.uint64(rank % WORD)
        for back in range(cache.size[row] - 1):
            i = cache.size[row] - one - np.uint32(back)
            v = order[i]
            if not passed[v]:
                continue
            for e in range(start[i], start[i + one]):
                w = graph.target[edge[e]]
                passed[w] = True
                for k in range(words):
                    follow[edge[e], k] |= closer[w, k]
        for leaf in leaves:
            if cache.hop[leaf] < 0 or cache.turn[leaf] != TURNS:
                continue
            pairs += 1
            v, fell = leaf, False
            while v != root:
                w = graph.target[edge[start[at[v]]]]
                rises = place[w] > place[v]
                if rises and fell:
                    turns[v] += 1
                fell = not rises
                v = w
    for c in range(np.uint32(len(depends))):
        for rank in range(np.uint32(depends.shape[1])):
            if follow[c, rank // WORD] >> np.uint64(rank % WORD) & BIT:
                depends[c, rank] = PRESENT
    return pairs, kept
