"""No credit loop where lanes are chosen hop by hop, by the ports a packet enters and leaves by.

The service level plays no part, so the proof holds whatever level hosts put into their packets. A
packet's lane on a channel depends on the port by which it entered the channel's switch. The graph
has nodes (channel, lane): a packet that holds channel c1 in lane l and waits for c2 waits for it in
the one lane that c2's switch gives to all packets from c1. So a dependency is (lane of c1, c1, c2),
as in `counted_trees.py`, but the lane is not that of the whole path: it is determined at each
switch, while the tree is walked from its far ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.check.counted_trees import scratch_of
from sar_agent.check.wiring import HOSTS, OTHERS, Wiring
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Kind
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel


class HopLanes(NamedTuple):
    """The lanes that each switch chooses. S switches, P ports (0 … P - 1), L lanes."""

    lane: U8
    """uint8[S, P, P], as `Routes.hop_lane`."""
    entry: U8
    """uint8[S, P]: the port by which the next switch is entered from a port's cable."""
    begin: U32
    """uint32[2, S, P], for destinations `HOSTS` and `OTHERS`: the lanes in which packets that begin
    at a switch leave by a port; bit l for packets from hosts to hosts, bit L + l for others."""


NO_HOPS = HopLanes(
    np.empty((0, 0, 0), np.uint8), np.empty((0, 0), np.uint8), np.empty((0, 0, 0), np.uint32)
)
"""For lanes by service level; the types are those of `hops_of`, so that kernels see one type."""
NO_HOPS.lane.flags.writeable = False


def hops_of(fabric: Fabric, routes: Routes, wiring: Wiring) -> HopLanes:
    """The lanes of `routes` (a read-only copy), and where packets enter and begin. Raises
    `InputError` where the lanes are not of this fabric's shape."""
    lane, ports, lanes = routes.hop_lane, int(wiring.ports), routes.virtual_lanes
    assert lane is not None
    if lane.shape != (fabric.switches, ports, ports) or lane.max() >= lanes > 0:
        raise InputError(
            f"lanes hop by hop of shape {lane.shape} up to lane {lane.max()} do not fit "
            f"{fabric.name} with {fabric.switches} switches of {ports - 1} ports and {lanes} lanes",
            remedy="compute them for this fabric",
        )
    lane = lane.copy()
    lane.flags.writeable = False
    entry = np.zeros((fabric.switches, ports), np.uint8)
    entry[fabric.channel_source, fabric.channel_port] = fabric.channel_port[fabric.channel_reverse]
    begin = np.zeros((2, fabric.switches, ports), np.uint32)
    for t in np.flatnonzero(fabric.terminal_up):
        s = fabric.terminal_switch[t]
        marks = np.uint32(1) << lane[s, fabric.terminal_switch_port[t]].astype(np.uint32)
        unit = fabric.terminal_kind[t] == Kind.IN_SWITCH
        begin[HOSTS - 1, s] |= marks << np.uint32(lanes if unit else 0)
        begin[OTHERS - 1, s] |= marks << np.uint32(lanes)
    return HopLanes(lane, entry, begin)


def count_hops(wiring: Wiring, hops: HopLanes, egress: U8) -> U8 | None:
    """uint8[2 L, S · P · P]: whether any packet in lane l of channel (s, p) waits for port q of the
    next switch, at (s · P + p) · P + q; the first L planes are for traffic between hosts. None
    where a tree does not reach."""
    used = np.zeros((2 * int(wiring.lanes), wiring.switches * int(wiring.ports) ** 2), np.uint8)
    return used if all(_count_trees(wiring, hops, table, used) for table in egress) else None


@kernel
def _count_trees(wiring: Wiring, hops: HopLanes, egress: U8, used: U8) -> bool:  # pragma: no cover
    """Counts one LID offset, uint8[D, S]; False as soon as a tree does not reach."""
    switches, ports, lanes = np.uint32(egress.shape[1]), wiring.ports, wiring.lanes
    one, low = np.uint32(1), (np.uint32(1) << lanes) - np.uint32(1)
    following, degree, queue, mark = scratch_of(wiring)
    for d in range(len(egress)):
        if not wiring.destination_kind[d]:
            continue
        row, root, kind = (
            egress[d],
            np.uint32(wiring.root[d]),
            np.uint32(wiring.destination_kind[d]) - one,
        )
        degree[:], mark[:] = 0, 0
        for s in range(switches):
            port = np.uint32(row[s])
            w = wiring.next[s * (ports + one) + (port if port < ports else ports)]
            following[s] = w
            degree[w] += one
        if row[root] != wiring.last[d] or degree[switches] != 1:
            return False
        degree[root] += one
        degree[switches + one] += one
        taken = np.uint32(0)
        for s in range(switches):
            queue[taken] = s
            taken += np.uint32(degree[s] == 0)
        i = np.uint32(0)
        while i < taken:
            v = np.uint32(queue[i])
            i += one
            w = np.uint32(following[v])
            degree[w] -= one
            queue[taken] = w
            taken += np.uint32(degree[w] == 0)
            if w >= switches:
                continue
            port = np.uint32(row[v])
            passing = np.uint32(mark[v] | hops.begin[kind, v, port])
            if not passing:
                continue
            if w != root:
                lane = np.uint32(hops.lane[w, hops.entry[v, port], row[w]])
                if passing & low:
                    mark[w] |= one << lane
                if passing >> lanes:
                    mark[w] |= one << (lanes + lane)
            at = (v * ports + port) * ports + np.uint32(row[w])
            plane = np.uint32(0)
            while passing:
                if passing & one:
                    used[plane, at] = 1
                passing >>= one
                plane += one
        if taken != switches - one:
            return False
    return True
