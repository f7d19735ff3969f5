"""The fabric as arrays for the check's kernels: a switch and a port give the next switch.

Routing has views of the fabric of its own; the check shares none of them on purpose, so that an
error in one of those cannot hide itself. Everything here comes from the `Fabric`'s cables. A
channel is named by (switch, port), as in forwarding tables: kernels look up no channel numbers,
and cables that vanish from a file or come back renumber nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U16, U32

NOBODY, HOSTS, OTHERS = 0, 1, 2
"""Class of a destination: `HOSTS` carry job traffic; `OTHERS` (switch LIDs, aggregation units) do
not; `NOBODY` is down and not checked."""


class Wiring(NamedTuple):
    """Arrays for kernels. S switches, D destinations, P ports (0 … P - 1), C live channels."""

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
    into_offset: U32
    """uint32[S + 1]: into_offset[s]:into_offset[s + 1] are the live channels that end at s."""
    into_switch: U16
    """uint16[C], the switch where each of them starts."""

    @property
    def switches(self) -> int:
        return int(self.sends.shape[1])

    def same_nodes(self, other: Wiring) -> bool:
        """Whether equal indices mean the same nodes and lanes; cables may differ."""
        return (
            self.ports == other.ports
            and self.lanes == other.lanes
            and self.sends.shape == other.sends.shape
            and np.array_equal(self.root, other.root)
            and np.array_equal(self.last, other.last)
        )


def wiring_of(fabric: Fabric, lanes: int) -> Wiring:
    """The live switches, cables and terminals of the fabric, for `lanes` virtual lanes."""
    switches, ports = fabric.switches, int(fabric.switch_ports.max(initial=0)) + 1
    kind = np.uint16 if switches + 1 < 1 << 16 else np.uint32
    alive = fabric.switch_up
    up = fabric.channel_up & alive[fabric.channel_source] & alive[fabric.channel_target]
    source, target = fabric.channel_source[up], fabric.channel_target[up]
    following = np.full((switches, ports + 1), switches, kind)
    following[source, fabric.channel_port[up]] = target
    following[~alive] = switches + 1

    kinds = np.full(fabric.destinations, OTHERS, np.uint8)
    kinds[: fabric.terminals][fabric.is_host_port] = HOSTS
    kinds[: fabric.terminals][~fabric.terminal_up] = NOBODY
    kinds[fabric.terminals :][~alive] = NOBODY

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
        kinds,
        sends,
        np.searchsorted(target[order], np.arange(switches + 1)).astype(np.uint32),
        source[order].astype(kind),
    )
