"""The certificate of checked routes: a number per channel and lane that rises along every path.

The channel dependency graph of routes that passed the check has no cycle, so its channels can be
numbered in a topological order. Whoever knows the numbers can verify the tables in one pass over
their dependencies (`dependencies_rise`), and can change one entry safely by comparing a few
numbers: the plugin repairs tables in this way after a failure.

Many orders are possible. A number here is as close as possible to a *preferred* order, in which
channels that lead up come first, the lowest first, then those that lead down, the highest first.
On trees all dependencies agree with it, so every live channel has the number that leaves most room,
also channels that no path uses yet. Elsewhere a channel is moved behind those that it must follow,
and ties are broken, so that of any two channels one may follow the other. The preferred order is
taken from the levels of a tree. If dependencies contradict it, two others are tried: one from the
distances to the switch nearest to all leaf switches (as Up*/Down* does on other fabrics), and one
without any preference. The numbers along which most turns between channels rise are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.hop_lanes import NO_HOPS, HopLanes
from sar_agent.check.wiring import Wiring
from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U32
from sar_agent.util.kernels import kernel

Planes = NDArray[np.unsignedinteger[Any]]
"""uint8, 16 or 32[L, S · P · P]: whether lane l has the dependency (s, p, q), at (s · P + p) · P +
q, as in `Counts`."""


def channel_numbers(
    fabric: Fabric, wiring: Wiring, planes: Planes, hops: HopLanes | None = None
) -> U32 | None:
    """uint32[L, S, P]: the number of the channel that leaves switch s by port p in lane l, above 0
    for all live channels and 0 for other ports; along each dependency in `planes` it rises. None
    where the dependencies close a cycle."""
    floor = _preferred(fabric, wiring, levels_of(fabric).astype(np.int64), hops)
    if not _falling(wiring, *_by_hop(hops), planes, floor):
        return _ranked(fabric, wiring, floor)
    other = _preferred(fabric, wiring, -_distances(fabric, wiring), hops)
    best, most = None, -1
    for least in (floor, other, (floor > 0).astype(np.uint32)):
        level = _levels(wiring, *_by_hop(hops), planes, least)
        if not len(level):
            return None
        numbers = _ranked(fabric, wiring, level)
        if (turns := _rising_turns(wiring, numbers.reshape(len(numbers), -1))) > most:
            best, most = numbers, turns
    return best


def _ranked(fabric: Fabric, wiring: Wiring, level: U32) -> U32:
    """`channel_numbers` by rising level (uint32[L · S · P]), switch GUID and port."""
    lanes, ports = int(wiring.lanes), int(wiring.ports)
    shape = (lanes, wiring.switches, ports)
    live = wiring.next.reshape(wiring.switches, ports + 1)[:, :-1] < wiring.switches
    by_guid = np.argsort(fabric.switch_guid, kind="stable")
    ranked = level.reshape(shape).transpose(1, 2, 0)[by_guid].ravel()
    rank = np.empty(len(ranked), np.uint32)
    dead = int(np.count_nonzero(ranked == 0))
    rank[np.argsort(ranked, kind="stable")] = np.arange(1 - dead, len(rank) + 1 - dead).clip(0)
    numbers = np.empty((wiring.switches, ports, lanes), np.uint32)
    numbers[by_guid] = rank.reshape(wiring.switches, ports, lanes)
    numbers[~live] = 0
    numbers = np.ascontiguousarray(numbers.transpose(2, 0, 1))
    numbers.flags.writeable = False
    return numbers


def dependencies_rise(
    wiring: Wiring, planes: Planes, numbers: U32, hops: HopLanes | None = None
) -> bool:
    """Whether each dependency in `planes` joins two numbered channels, and the number rises along
    it. `numbers` uint32[L, S, P] may be of another fabric; then the answer is no."""
    shape = (int(wiring.lanes), wiring.switches, int(wiring.ports))
    return numbers.shape == shape and not _falling(wiring, *_by_hop(hops), planes, numbers.ravel())


def _by_hop(hops: HopLanes | None) -> tuple[HopLanes, bool]:
    return (hops, True) if hops else (NO_HOPS, False)


def _preferred(
    fabric: Fabric, wiring: Wiring, height: NDArray[np.int64], hops: HopLanes | None
) -> U32:
    """uint32[L · S · P]: the preferred number of each live channel. A channel leads up to a switch
    of greater `height`, or of greater GUID at the same height. A higher lane comes after all
    channels of lower ones if packets change lanes; else lanes do not meet."""
    switches, ports = wiring.switches, int(wiring.ports)
    order = np.lexsort((fabric.switch_guid, height))
    place = np.empty(switches + 2, np.int64)
    place[order] = np.arange(1, switches + 1)
    following = wiring.next.reshape(switches, ports + 1)[:, :-1].astype(np.int64)
    near = place[:switches, None]
    number = np.where(place[following] > near, near, 2 * switches + 1 - near)
    number[following >= switches] = 0
    lanes = np.arange(int(wiring.lanes))[:, None, None] * (2 * switches + 1 if hops else 0)
    floor: U32 = np.where(number > 0, number + lanes, 0).astype(np.uint32).ravel()
    return floor


def _distances(fabric: Fabric, wiring: Wiring) -> NDArray[np.int64]:
    """int64[S]: hops from the switch nearest to all leaf switches."""
    hops = _hops_from(wiring, fabric.leaves.astype(np.uint32))
    total = np.where(fabric.switch_up, hops.sum(axis=0), hops.sum() + 1)
    root = np.lexsort((fabric.switch_guid, total))[:1]
    distance: NDArray[np.int64] = _hops_from(wiring, root.astype(np.uint32))[0].astype(np.int64)
    return distance


@kernel
def _hops_from(wiring: Wiring, roots: U32) -> U32:  # pragma: no cover
    """uint32[R, S]: hops to each of R switches; S where there is no path."""
    switches = np.uint32(wiring.sends.shape[1])
    hops = np.full((len(roots), switches), switches, np.uint32)
    queue = np.empty(switches, np.uint32)
    for r in range(len(roots)):
        hops[r, roots[r]] = 0
        queue[0] = roots[r]
        size, i, one = np.uint32(1), np.uint32(0), np.uint32(1)
        while i < size:
            v = queue[i]
            i += one
            for e in range(wiring.into_offset[v], wiring.into_offset[v + one]):
                u = np.uint32(wiring.into_switch[e])
                if hops[r, u] == switches:
                    hops[r, u] = hops[r, v] + one
                    queue[size] = u
                    size += one
    return hops


@kernel
def _falling(
    wiring: Wiring, hops: HopLanes, by_hop: bool, planes: Planes, numbers: U32
) -> int:  # pragma: no cover
    """The number of dependencies along which `numbers` (uint32[L · S · P]) do not rise."""
    switches, ports = np.uint32(wiring.sends.shape[1]), wiring.ports
    width, one, falling = ports + np.uint32(1), np.uint32(1), 0
    for lane in range(wiring.lanes):
        base = lane * switches * ports
        for s in range(switches):
            for p in range(ports):
                w = np.uint32(wiring.next[s * width + p])
                if w >= switches:
                    continue
                channel = s * ports + p
                for q in range(one, ports):
                    if not planes[lane, channel * ports + q] or (
                        wiring.next[w * width + q] >= switches
                    ):
                        continue
                    then = base
                    if by_hop:
                        then = hops.lane[w, hops.entry[s, p], q] * switches * ports
                    number = numbers[base + channel]
                    falling += number == 0 or number >= numbers[then + w * ports + q]
    return falling


@kernel
def _rising_turns(wiring: Wiring, numbers: U32) -> int:  # pragma: no cover
    """How many pairs of channels that follow each other rise in one lane, back to the same switch
    not counted; `numbers` uint32[L, S · P]."""
    switches, ports = np.uint32(wiring.sends.shape[1]), wiring.ports
    width, one, rising = ports + np.uint32(1), np.uint32(1), 0
    for lane in range(wiring.lanes):
        for s in range(switches):
            for p in range(one, ports):
                w = np.uint32(wiring.next[s * width + p])
                if w >= switches:
                    continue
                for q in range(one, ports):
                    after = wiring.next[w * width + q]
                    if after < switches and after != s:
                        rising += numbers[lane, s * ports + p] < numbers[lane, w * ports + q]
    return rising


@kernel
def _levels(
    wiring: Wiring, hops: HopLanes, by_hop: bool, planes: Planes, floor: U32
) -> U32:  # pragma: no cover
    """uint32[L · S · P]: at least `floor`, and above the level of each channel before it; in Kahn's
    order, each dependency once. Empty where there is a cycle."""
    switches, ports = np.uint32(wiring.sends.shape[1]), wiring.ports
    width, one = ports + np.uint32(1), np.uint32(1)
    channels = switches * ports
    level = floor.copy()
    degree = np.zeros(len(floor), np.uint32)
    queue = np.empty(len(floor), np.uint32)
    for lane in range(wiring.lanes):
        for s in range(switches):
            for p in range(one, ports):
                w = np.uint32(wiring.next[s * width + p])
                if w >= switches:
                    continue
                at = (s * ports + p) * ports
                for q in range(one, ports):
                    if planes[lane, at + q] and wiring.next[w * width + q] < switches:
                        then = np.uint32(lane)
                        if by_hop:
                            then = np.uint32(hops.lane[w, hops.entry[s, p], q])
                        degree[then * channels + w * ports + q] += one
    size, i = np.uint32(0), np.uint32(0)
    for n in range(len(floor)):
        if floor[n] and degree[n] == 0:
            queue[size] = n
            size += one
    while i < size:
        this = queue[i]
        i += one
        held, channel = np.uint32(this // channels), np.uint32(this % channels)
        u, port = np.uint32(channel // ports), np.uint32(channel % ports)
        w = np.uint32(wiring.next[u * width + port])
        for q in range(one, ports):
            if planes[held, channel * ports + q] and wiring.next[w * width + q] < switches:
                then = held
                if by_hop:
                    then = np.uint32(hops.lane[w, hops.entry[u, port], q])
                then = np.uint32(then * channels + w * ports + q)
                level[then] = max(level[then], level[this] + one)
                degree[then] -= one
                if degree[then] == 0:
                    queue[size] = then
                    size += one
    live = 0
    for n in range(len(floor)):
        live += floor[n] > 0
    return level if size == live else level[:0]
