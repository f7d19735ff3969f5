"""No credit loop: a number for each channel and lane that rises along every dependency.

A dependency joins two channels: some packet holds the first and waits for the second. By Dally and
Seitz's condition there is no credit loop if this graph has no cycle. Channels from a terminal and
into one begin and end every chain, so only channels between switches matter. A packet that changes
lanes hop by hop waits in the one lane that the next switch gives to all packets from its channel.

One search answers both questions. Kahn's algorithm removes channels for which nothing waits, in a
topological order: that order is the certificate. What cannot be removed is on a cycle, or behind
one. Whoever knows the numbers can verify the tables in one pass over their dependencies, and can
change one entry safely by comparing a few numbers: the plugin repairs tables in this way.

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

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.walk import Planes, read_only
from sar_agent.check.wiring import Wiring
from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import I32, U32
from sar_agent.util.kernels import kernel


class Dependencies:
    """The graph of `planes` (uint16[L, S · P · P]): its nodes are channels in lanes, (lane · S
    + s) · P + p."""

    def __init__(self, wiring: Wiring, planes: Planes) -> None:
        self.wiring = wiring
        self.first, self.after = _graph(wiring, read_only(planes), int(np.count_nonzero(planes)))
        """uint32[N + 1], uint32[E]: channel n is held by packets that wait for each of
        after[first[n]:first[n + 1]]."""

    @property
    def before(self) -> U32:
        """uint32[E]: the channel that is held, for each of `after`."""
        nodes = np.arange(len(self.first) - 1, dtype=np.uint32)
        return np.repeat(nodes, np.diff(self.first))

    def falling(self, numbers: U32) -> NDArray[np.intp]:
        """The dependencies along which `numbers` (uint32[N]; 0: no number) do not rise."""
        old = np.repeat(numbers, np.diff(self.first))
        return np.flatnonzero((old == 0) | (old >= numbers[self.after]))

    def levels(self, least: U32) -> U32 | None:
        """uint32[N]: at least `least`, and above the level of each channel before it. None where
        there is a cycle."""
        level = least.copy()
        return None if _order(self.first, self.after, level).any() else level

    @property
    def acyclic(self) -> bool:
        """Whether there is no credit loop."""
        return self.levels(np.zeros(len(self.first) - 1, np.uint32)) is not None

    def cycle(self) -> list[tuple[int, int, int]]:
        """(switch, port, lane) of the channels of one cycle, in order; empty where there is no
        cycle. Each channel that cannot be removed waits for another one that cannot."""
        left = _order(self.first, self.after, np.zeros(len(self.first) - 1, np.uint32)) > 0
        stays = left[self.before] & left[self.after]
        held_by = dict(zip(self.after[stays].tolist(), self.before[stays].tolist(), strict=True))
        seen: dict[int, int] = {}
        node = int(np.argmax(left)) if left.any() else -1
        while node >= 0 and node not in seen:
            seen[node] = len(seen)
            node = held_by[node]
        loop = list(seen)[seen.get(node, 0) :][::-1]
        begin = loop.index(min(loop)) if loop else 0
        switches, ports = self.wiring.switches, int(self.wiring.ports)
        return [
            (n // ports % switches, n % ports, n // ports // switches)
            for n in loop[begin:] + loop[:begin]
        ]


def channel_numbers(fabric: Fabric, wiring: Wiring, planes: Planes) -> U32 | None:
    """uint32[L, S, P]: the number of the channel that leaves switch s by port p in lane l, above 0
    for all live channels and 0 for other ports; along each dependency in `planes` it rises. None
    where the dependencies close a cycle."""
    graph = Dependencies(wiring, planes)
    floor = _preferred(fabric, wiring, levels_of(fabric).astype(np.int64))
    if not len(graph.falling(floor)):
        return _ranked(fabric, wiring, floor)
    other = _preferred(fabric, wiring, -_distances(fabric, wiring))
    one_lane = wiring._replace(lanes=np.uint32(1), hop_lane=np.empty((0, 0, 0), np.uint8))
    turns = Dependencies(one_lane, np.ones((1, planes.shape[1]), np.uint16))
    ports = int(wiring.ports)
    back = wiring.following[:, :-1].ravel()[turns.after] == turns.before // ports
    best, most = None, -1
    for least in (floor, other, (floor > 0).astype(np.uint32)):
        if (level := graph.levels(least)) is None:
            return None
        numbers = _ranked(fabric, wiring, level)
        rising = sum(
            int(np.count_nonzero((lane[turns.before] < lane[turns.after]) & ~back))
            for lane in numbers.reshape(len(numbers), -1)
        )
        if rising > most:
            best, most = numbers, rising
    return best


def dependencies_rise(wiring: Wiring, planes: Planes, numbers: U32) -> bool:
    """Whether each dependency in `planes` joins two numbered channels, and the number rises along
    it. `numbers` uint32[L, S, P] may be of another fabric; then the answer is no."""
    shape = (int(wiring.lanes), wiring.switches, int(wiring.ports))
    return numbers.shape == shape and not len(Dependencies(wiring, planes).falling(numbers.ravel()))


def first_names(names: list[str]) -> str:
    """The first eight channels of a cycle, and how many there are where that is not all."""
    rest = f" … ({len(names)} channels)" if len(names) > 8 else ""
    return ", ".join(names[:8]) + rest


def _ranked(fabric: Fabric, wiring: Wiring, level: U32) -> U32:
    """`channel_numbers` by rising level (uint32[L · S · P]), switch GUID and port."""
    lanes, ports = int(wiring.lanes), int(wiring.ports)
    by_guid = np.argsort(fabric.switch_guid, kind="stable")
    shape = (lanes, wiring.switches, ports)
    ranked = level.reshape(shape).transpose(1, 2, 0)[by_guid].ravel()
    rank = np.empty(len(ranked), np.uint32)
    dead = int(np.count_nonzero(ranked == 0))
    rank[np.argsort(ranked, kind="stable")] = np.arange(1 - dead, len(rank) + 1 - dead).clip(0)
    numbers = np.empty((wiring.switches, ports, lanes), np.uint32)
    numbers[by_guid] = rank.reshape(wiring.switches, ports, lanes)
    numbers[~wiring.live] = 0
    numbers = np.ascontiguousarray(numbers.transpose(2, 0, 1))
    numbers.flags.writeable = False
    return numbers


def _preferred(fabric: Fabric, wiring: Wiring, height: NDArray[np.int64]) -> U32:
    """uint32[L · S · P]: the preferred number of each live channel. A channel leads up to a switch
    of greater `height`, or of greater GUID at the same height. A higher lane comes after all
    channels of lower ones if packets change lanes; else lanes do not meet."""
    switches = wiring.switches
    place = np.empty(switches + 2, np.int64)
    place[np.lexsort((fabric.switch_guid, height))] = np.arange(1, switches + 1)
    near = place[:switches, None]
    number = np.where(place[wiring.following[:, :-1]] > near, near, 2 * switches + 1 - near)
    lanes = np.arange(int(wiring.lanes))[:, None, None] * (2 * switches + 1 if wiring.by_hop else 0)
    floor: U32 = np.where(wiring.live, number + lanes, 0).astype(np.uint32).ravel()
    return floor


def _distances(fabric: Fabric, wiring: Wiring) -> NDArray[np.int64]:
    """int64[S]: hops from the switch nearest to all leaf switches."""
    hops = _hops_from(wiring, fabric.leaves)
    total = np.where(fabric.switch_up, hops.sum(axis=0), hops.sum() + 1)
    root = np.lexsort((fabric.switch_guid, total))[:1].astype(np.int32)
    distance: NDArray[np.int64] = _hops_from(wiring, root)[0].astype(np.int64)
    return distance


@kernel
def _hops_from(wiring: Wiring, roots: I32) -> U32:  # pragma: no cover
    """uint32[R, S]: hops from each of R switches; S where there is no path."""
    switches, ports, one = np.uint32(wiring.sends.shape[1]), wiring.ports, np.uint32(1)
    hops = np.full((len(roots), switches), switches, np.uint32)
    queue = np.empty(switches, np.uint32)
    for r in range(len(roots)):
        hops[r, roots[r]], queue[0] = 0, roots[r]
        size, i = one, np.uint32(0)
        while i < size:
            v = queue[i]
            i += one
            for q in range(ports):
                w = np.uint32(wiring.next[v * (ports + one) + q])
                if w < switches and hops[r, w] == switches:
                    hops[r, w] = hops[r, v] + one
                    queue[size] = w
                    size += one
    return hops


@kernel
def _graph(wiring: Wiring, planes: Planes, most: int) -> tuple[U32, U32]:  # pragma: no cover
    """`Dependencies.first` and `after`, of at most `most` entries."""
    switches, ports, one = np.uint32(wiring.sends.shape[1]), wiring.ports, np.uint32(1)
    width, by_hop = ports + one, len(wiring.hop_lane) > 0
    first = np.zeros(len(planes) * switches * ports + 1, np.uint32)
    after = np.empty(most, np.uint32)
    size = node = np.uint32(0)
    for held in range(len(planes)):
        plane = planes[held]
        for s in range(switches):
            for p in range(ports):
                w, at = np.uint32(wiring.next[s * width + p]), (s * ports + p) * ports
                for q in range(ports if w < switches else np.uint32(0)):
                    if plane[at + q] and wiring.next[w * width + q] < switches:
                        lane = np.uint32(held)
                        if by_hop:
                            lane = np.uint32(wiring.hop_lane[w, wiring.entry[s, p], q])
                        after[size] = (lane * switches + w) * ports + q
                        size += one
                node += one
                first[node] = size
    return first, after[:size]


@kernel
def _order(first: U32, after: U32, level: U32) -> U32:  # pragma: no cover
    """uint32[N]: 0 for each channel that Kahn's algorithm could remove. Raises `level` (uint32[N])
    above that of all channels before."""
    nodes, one = len(level), np.uint32(1)
    waits, queue = np.zeros(nodes, np.uint32), np.empty(nodes, np.uint32)
    for w in after:
        waits[w] += one
    size, i = np.uint32(0), np.uint32(0)
    for n in range(nodes):
        if waits[n] == 0:
            queue[size] = n
            size += one
    while i < size:
        v = queue[i]
        i += one
        for e in range(first[v], first[v + one]):
            w = after[e]
            level[w] = max(level[w], level[v] + one)
            waits[w] -= one
            if waits[w] == 0:
                queue[size] = w
                size += one
    return waits
