"""The fabric as arrays for the check's kernels: a switch and a port give the next switch.

Routing has views of the fabric of its own; the check shares none of them on purpose, so that an
error in one of those cannot hide itself. Everything here comes from the `Fabric`'s cables. A
channel is named by (switch, port), as in forwarding tables: kernels look up no channel numbers,
and cables that vanish from a file or come back renumber nothing.

Who sends, and to whom, is part of it, so the same walk serves known hosts and unknown ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import U8, U16, U32, Bool
from sar_agent.util.plural import plural

NOBODY, HOSTS, OTHERS = 0, 1, 2
"""Class of a destination: `HOSTS` carry job traffic; `OTHERS` (switch LIDs, aggregation units) do
not; `NOBODY` is down and not checked."""


class Wiring(NamedTuple):
    """Arrays for kernels. S switches, D destinations, P ports (0 … P - 1), L lanes."""

    next: U16
    """uint16[S, P + 1], flat: the switch that a live port leads to; S where it leads nowhere, as do
    all ports from P on (column P); S + 1, from which no check follows, in the row of a switch that
    is down."""
    ports: np.uint32
    """P."""
    lanes: np.uint32
    """L, the virtual lanes in use."""
    root: U16
    """uint16[D], the last switch before each destination."""
    last: U8
    """uint8[D], its port there."""
    destination_kind: U8
    """uint8[D], `NOBODY`, `HOSTS` or `OTHERS`."""
    sends: U32
    """uint32[2, S], for `HOSTS` and `OTHERS`: the marks with which paths begin at each switch, in
    lane 0. Bit l means that packets from hosts to hosts pass in lane l; bit L + l means that other
    packets do, those to a switch's own LID or to and from aggregation units."""
    hop_lane: U8
    """uint8[S, P, P], as `Routes.hop_lane`; uint8[0, 0, 0] where the service level, or nothing,
    determines a packet's lane."""
    entry: U8
    """uint8[S, P]: the port by which the next switch is entered from a port's cable."""
    begin: U32
    """uint32[2, S, P], with lanes hop by hop: as `sends`, for packets that leave by each port."""

    @property
    def switches(self) -> int:
        return int(self.sends.shape[1])

    @property
    def by_hop(self) -> bool:
        """Whether lanes are chosen by the ports a packet passes."""
        return len(self.hop_lane) > 0

    @property
    def following(self) -> U16:
        """uint16[S, P + 1], `next`."""
        return self.next.reshape(self.switches, -1)

    @property
    def live(self) -> Bool:
        """bool[S, P]: ports with a live cable to a switch."""
        return self.following[:, :-1] < self.switches


def wiring_of(fabric: Fabric, lanes: int = 1, hop_lane: U8 | None = None) -> Wiring:
    """The live switches, cables and terminals of the fabric, for `lanes` virtual lanes, which
    `hop_lane` chooses, if given. Raises `InputError` where that is not of this fabric's shape."""
    switches, ports = fabric.switches, int(fabric.switch_ports.max(initial=0)) + 1
    kind = np.uint16 if switches + 1 < 1 << 16 else np.uint32
    alive = fabric.switch_up
    up = fabric.channel_up & alive[fabric.channel_source] & alive[fabric.channel_target]
    following = np.full((switches, ports + 1), switches, kind)
    following[fabric.channel_source[up], fabric.channel_port[up]] = fabric.channel_target[up]
    following[~alive] = switches + 1

    kinds = np.full(fabric.destinations, OTHERS, np.uint8)
    kinds[: fabric.terminals][fabric.is_host_port] = HOSTS
    kinds[: fabric.terminals][~fabric.terminal_up] = NOBODY
    kinds[fabric.terminals :][~alive] = NOBODY

    units = np.zeros(switches, np.bool_)
    units[fabric.terminal_switch[fabric.terminal_up]] = True
    hosts, units = (fabric.terminals_at > 0) & alive, units & alive
    sends = np.zeros((2, switches), np.uint32)
    sends[HOSTS - 1] = hosts + ((units & ~hosts).astype(np.uint32) << lanes)
    sends[OTHERS - 1] = (hosts | units).astype(np.uint32) << lanes
    return Wiring(
        following.ravel(),
        np.uint32(ports),
        np.uint32(lanes),
        fabric.destination_switch.astype(kind),
        fabric.destination_port,
        kinds,
        sends,
        *_hop_by_hop(fabric, ports, lanes, hop_lane),
    )


def _hop_by_hop(fabric: Fabric, ports: int, lanes: int, hop_lane: U8 | None) -> tuple[U8, U8, U32]:
    """`Wiring.hop_lane` (a read-only copy), `entry` and `begin`."""
    shape = (fabric.switches if hop_lane is not None else 0, ports)
    lane = np.empty((0, 0, 0), np.uint8) if hop_lane is None else hop_lane.copy()
    lane.flags.writeable = False
    entry, begin = np.zeros(shape, np.uint8), np.zeros((2, *shape), np.uint32)
    if hop_lane is None:
        return lane, entry, begin
    if lane.shape != (*shape, ports) or lane.max() >= lanes > 0:
        raise InputError(
            f"lanes hop by hop of shape {lane.shape} up to lane {lane.max()} do not fit "
            f"{fabric.name} with {plural(fabric.switches, 'switch', 'switches')} of "
            f"{plural(ports - 1, 'port')} and {lanes} lanes",
            remedy="compute them for this fabric",
        )
    entry[fabric.channel_source, fabric.channel_port] = fabric.channel_port[fabric.channel_reverse]
    up = np.flatnonzero(fabric.terminal_up)
    at, unit = fabric.terminal_switch[up], fabric.terminal_kind[up] == Kind.IN_SWITCH
    marks = np.uint32(1) << lane[at, fabric.terminal_switch_port[up]].astype(np.uint32)
    to_hosts = marks << np.where(unit, lanes, 0).astype(np.uint32)[:, None]
    np.bitwise_or.at(begin[HOSTS - 1], at, to_hosts)
    np.bitwise_or.at(begin[OTHERS - 1], at, marks << np.uint32(lanes))
    return lane, entry, begin


def with_hosts(fabric: Fabric, wiring: Wiring, at: Bool, units: bool = False) -> Wiring:
    """The same wiring with hosts that the fabric does not know at the switches `at` (bool[S]),
    which all senders address. With lanes hop by hop, they may be at any free port. With `units`,
    aggregation units count as hosts, too."""
    sends, begin = wiring.sends.copy(), wiring.begin.copy()
    kinds, lanes = wiring.destination_kind.copy(), wiring.lanes
    if units:
        sends[HOSTS - 1] |= sends[HOSTS - 1] >> lanes
        begin[HOSTS - 1] |= begin[HOSTS - 1] >> lanes
        kinds[: fabric.terminals][fabric.terminal_up] = HOSTS
    sends[HOSTS - 1, at] |= np.uint32(1)
    sends[OTHERS - 1, at] |= np.uint32(1) << lanes
    kinds[led_to(fabric, at)] = HOSTS
    free = free_ports(fabric, wiring)
    for s in np.flatnonzero(at) if wiring.by_hop else ():
        marks = np.uint32(1) << wiring.hop_lane[s, free[s]].astype(np.uint32)
        own = np.bitwise_or.reduce(marks, axis=0)
        begin[HOSTS - 1, s] |= own
        begin[OTHERS - 1, s] |= own << lanes
    return wiring._replace(sends=sends, destination_kind=kinds, begin=begin)


def led_to(fabric: Fabric, switches: Bool) -> Bool:
    """bool[D]: the destinations whose trees lead packets to unknown hosts at `switches`: the
    switches' LIDs, and known ports that are down, to which the check requires no paths."""
    return np.concatenate([~fabric.terminal_up & switches[fabric.terminal_switch], switches])


def free_ports(fabric: Fabric, wiring: Wiring) -> Bool:
    """bool[S, P]: ports without a live cable to a switch; hosts may be attached there."""
    ports = np.arange(int(wiring.ports))
    return ~wiring.live & (ports > 0) & (ports <= fabric.switch_ports[:, None])
