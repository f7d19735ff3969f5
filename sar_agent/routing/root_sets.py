"""Sets of switches that may be the roots of a fabric's Up*/Down* order.

Levels by distance from the hosts are misleading where sites have grown: a management switch with
hosts, cabled to a core, puts that core on the level of the spines. Levels by distance from the
roots are not, once the roots are known. OpenSM's `updn` takes the switches that nearly all hosts
are equally far from; where several rails meet only at some leaf switches, no switch is. Here each
part of the fabric above the leaf switches is asked on its own, with the leaf switches next to it.
The roots of one rail serve all: the leaf switches at which rails meet are below these roots, and
above the rest of the other rails.

Leaf switches that still share no root get one: a switch beside what is above both is lifted above
all others. The other leaf switches keep their roots.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_of
from sar_agent.fabric.levels import levels_above
from sar_agent.fabric.model import I64, U8, Bool

F32 = NDArray[np.float32]
EQUALLY_FAR = 0.5
"""The share of the host ports that has to be equally far from a root. Up to half may be nearer, or
farther: those of storage at the cores, of leaf switches between rails, of management switches."""
NEARER = 0.25
"""How many hops more than the nearest candidate's a root's mean distance may be: with many pods,
most hosts are equally far from the switches of one pod, too, but further."""
LIFTED = 6
"""The most switches that are lifted to join leaf switches."""
PARTS = 2
"""How many parts are asked, the largest first: rails are much alike."""


def heights_below_roots(fabric: Fabric, hops: U8, least_hosts: int) -> Iterator[NDArray[np.int64]]:
    """int[S]: heights by distance from each set of roots; `hops` uint8[S, S]. Switches with fewer
    than `least_hosts` host ports count as above the leaf switches."""
    hosts = fabric.terminals_at.astype(np.float64)
    above = (fabric.terminals_at < least_hosts) & fabric.switch_up
    source = fabric.channel_source[fabric.channel_up]
    target = fabric.channel_target[fabric.channel_up]
    for part in _parts(fabric, above)[:PARTS]:
        leaves = np.unique(target[part[source] & ~above[target]])
        far, total = hops[np.ix_(part, leaves)], hosts[leaves].sum()
        if not total:
            continue
        equally = np.max([(far == h) @ hosts[leaves] for h in range(far.max() + 1)], axis=0)
        mean = np.where(equally >= EQUALLY_FAR * total, far @ hosts[leaves] / total, np.inf)
        roots = np.flatnonzero(part)[mean <= mean.min() + NEARER]
        if np.isfinite(mean.min()):
            yield -levels_above(fabric, roots).astype(np.int64)


def _parts(fabric: Fabric, above: Bool) -> list[Bool]:
    """bool[S] each: the connected parts of the switches `above`, the largest first."""
    inside = fabric.channel_up & above[fabric.channel_source] & above[fabric.channel_target]
    source, target = fabric.channel_source[inside], fabric.channel_target[inside]
    part = components_of(fabric.switches, source, target)
    names, sizes = np.unique(part[above], return_counts=True)
    return [above & (part == name) for name in names[np.argsort(-sizes, kind="stable")]]


def joining_order(fabric: Fabric, height: NDArray[np.integer]) -> I64:
    """int64[S], the place of each switch, by `height` int[S] and GUID, but with single switches
    lifted above all others that join pairs of leaf switches which have no common switch above them.
    The switch that joins most of them is lifted first; at most `LIFTED` are.

    O(S^2 L) for each, in matrix products."""
    place = np.empty(fabric.switches, np.int64)
    place[np.lexsort((fabric.switch_guid, height))] = np.arange(fabric.switches)
    source = fabric.channel_source[fabric.channel_up]
    target = fabric.channel_target[fabric.channel_up]
    beside = np.zeros((fabric.switches, fabric.switches), np.float32)
    beside[source, target] = 1
    above, unjoined = _above(fabric, place)
    for _ in range(LIFTED):
        if not unjoined.any():
            break
        some = unjoined.any(axis=1)
        near = (above[some] @ beside > 0).astype(np.float32)
        best = np.argmax((unjoined[np.ix_(some, some)] @ near * near).sum(axis=0))
        other = place.copy()
        other[best] = fabric.switches + place.max()
        above, left = _above(fabric, other)
        if left.sum() >= unjoined.sum():
            break
        place, unjoined = other, left
    return place


def _above(fabric: Fabric, place: I64) -> tuple[F32, Bool]:
    """float32[L, S], 1 where a switch is reached from a leaf switch by going up, or is that one;
    and bool[L, L], the pairs for which there is no such switch."""
    reached = np.packbits(np.eye(fabric.switches, dtype=np.bool_), axis=1)
    rises = fabric.channel_up & (place[fabric.channel_target] > place[fabric.channel_source])
    for v in np.argsort(-place).tolist():
        first, last = fabric.channel_offset[v : v + 2].tolist()
        up = fabric.channel_target[first:last][rises[first:last]]
        reached[v] |= np.bitwise_or.reduce(reached[up], axis=0)
    bits = np.unpackbits(reached[fabric.leaves], axis=1, count=fabric.switches)
    above = bits.astype(np.float32)
    return above, above @ above.T == 0
