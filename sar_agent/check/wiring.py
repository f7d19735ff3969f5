"""The fabric as the check follows it: a switch and a port give the next switch.

Everything here comes from the `Fabric`'s cables, so that what an engine believes of them plays no
part. A channel is named by (switch, port), which is what tables hold: no look-up of channel
numbers, and cables that vanish from a file or come back renumber nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8

U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]

NOBODY, HOSTS, OTHERS = 0, 1, 2
"""Who a destination is asked for by: hosts' ports by everybody, the rest by nobody's jobs."""


class Wiring(NamedTuple):
    """Arrays for kernels. S switches, D destinations, P ports (0 … P - 1), C live channels."""

    next: U16
    """uint16[S, P + 1] flat: the switch that a live port leads to; S where it leads nowhere, as all
    ports from P on do (column P); S + 1, which is asked for nothing, in the row of a switch that
    is down."""
    ports: np.uint32
    """P."""
    lanes: np.uint32
    """L, the virtual lanes in use."""
    root: U16
    """uint16[D], the last switch before each destination."""
    last: U8
    """uint8[D], its port there."""
    asks: U8
    """uint8[D], `NOBODY`, `HOSTS` or `OTHERS`."""
    sends: U32
    """uint32[2, S], for `HOSTS` and `OTHERS`: the marks with which paths begin at each switch, in
    lane 0. Bit l says that hosts' packets to hosts pass in lane l, bit L + l that
    others' do: to a switch's own LID, or to and from aggregation units."""
    most: U32
    """uint32[2], all marks of `sends` together."""
    into_offset: U32
    """uint32[S + 1]"""
    into_switch: U16
    """uint16[C]: live channels end at s from these switches: into_offset[s] … into_offset[s + 1]"""
    into_port: U8
    """uint8[C], and leave those by this port."""

    @property
    def switches(self) -> int:
        return int(self.sends.shape[1])

    def same_nodes(self, other: Wiring) -> bool:
        """Whether the same numbers stand for the same places and lanes; cables may differ."""
        return (
            self.ports == other.ports
            and self.lanes == other.lanes
            and self.sends.shape == other.sends.shape
            and np.array_equal(self.root, other.root)
            and np.array_equal(self.last, other.last)
        )

    def moved(self, before: Wiring) -> tuple[U32, U32]:
        """What changed between the same nodes: (uint32[·, 2] switches and ports that lead
        elsewhere, or nowhere, or somewhere at last; uint32[·] switches at which other paths begin
        than before, or that came back)."""
        here, there = (w.next.reshape(w.switches, -1) for w in (self, before))
        touched = (self.sends != before.sends).any(axis=0)
        touched |= (here[:, -1] == self.switches) & (there[:, -1] != self.switches)
        moved = np.argwhere(here != there)
        return moved.astype(np.uint32), np.flatnonzero(touched).astype(np.uint32)


def wiring_of(fabric: Fabric, lanes: int) -> Wiring:
    """What is live."""
    switches, ports = fabric.switches, int(fabric.switch_ports.max(initial=0)) + 1
    kind = np.uint16 if switches + 1 < 1 << 16 else np.uint32
    alive = fabric.switch_up
    up = fabric.channel_up & alive[fabric.channel_source] & alive[fabric.channel_target]
    source, port, target = (
        array[up] for array in (fabric.channel_source, fabric.channel_port, fabric.channel_target)
    )
    following = np.full((switches, ports + 1), switches, kind)
    following[source, port] = target
    following[~alive] = switches + 1

    asks = np.full(fabric.destinations, OTHERS, np.uint8)
    asks[: fabric.terminals][fabric.is_host_port] = HOSTS
    asks[: fabric.terminals][~fabric.terminal_up] = NOBODY
    asks[fabric.terminals :][~alive] = NOBODY

    hosts = fabric.terminals_at > 0
    units = np.zeros(switches, np.bool_)
    units[fabric.terminal_switch[fabric.terminal_up]] = True
    hosts, units = hosts & alive, units & alive
    sends = np.zeros((2, switches), np.uint32)
    sends[HOSTS - 1] = hosts + ((units & ~hosts).astype(np.uint32) << lanes)
    sends[OTHERS - 1] = (hosts | units).astype(np.uint32) << lanes

    order = np.argsort(target, kind="stable")
    return Wiring(
        following.ravel(),
        np.uint32(ports),
        np.uint32(lanes),
        fabric.destination_switch.astype(kind),
        fabric.destination_port,
        asks,
        sends,
        np.bitwise_or.reduce(sends, axis=1),
        np.searchsorted(target[order], np.arange(switches + 1)).astype(np.uint32),
        source[order].astype(kind),
        port[order].astype(np.uint8),
    )
