"""The certificate that a plan carries: which paths its channel numbers cover, and which are kept.

A reader of the routes file sees terminals, but not which of them are aggregation units, and
switches at which unknown hosts may send. So the numbers rise along the paths from all switches with
either of these to the LIDs of all of them. They do not cover the other switches' LIDs: between
spines these paths turn from down to up, and an order that serves them leaves less room for other
tables and for repairs.

The certificate of a routes file is verified against the tables; nothing that the file says about
itself is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.check.order import Dependencies, channel_numbers, dependencies_rise
from sar_agent.check.proof import ProvedTables
from sar_agent.check.walk import Planes
from sar_agent.check.wiring import led_to, with_hosts
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32, Bool


def certificate_of(
    fabric: Fabric, proved: ProvedTables, senders: Bool, kept: U32 | None = None
) -> U32:
    """The channel numbers of proved tables, uint32[L, S, P]: `kept`, those of earlier tables, where
    they rise and number all live channels, so that both can be mixed in that order; else new ones.

    `senders` bool[S] are switches at which unknown hosts may send (`senders_proved`). Where paths
    of aggregation units close a cycle, these are not covered (`covers_units`)."""
    for units in (True, False) if _has_units(fabric) else (False,):
        planes = host_planes(fabric, proved, senders, units)
        rise = kept is not None and dependencies_rise(proved.wiring, planes, kept)
        if kept is not None and rise and kept[:, proved.wiring.live].all():
            return kept
        numbers = channel_numbers(fabric, proved.wiring, planes)
        if numbers is not None:
            return numbers
    raise AssertionError("unreachable: routes that passed the check have an order")


def covers_units(fabric: Fabric, proved: ProvedTables, senders: Bool, numbers: U32) -> bool:
    """Whether the numbers, which rise along the paths of hosts, rise along those of aggregation
    units, too. A reader of the file cannot tell them apart: without that, it has no certificate."""
    return not _has_units(fabric) or dependencies_rise(
        proved.wiring, host_planes(fabric, proved, senders, True), numbers
    )


def _has_units(fabric: Fabric) -> bool:
    """Whether the fabric has live aggregation units."""
    return bool((fabric.terminal_up & ~fabric.is_host_port).any())


def host_planes(
    fabric: Fabric, proved: ProvedTables, senders: Bool | None, units: bool = False
) -> Planes:
    """uint16[L, S · P · P]: the dependencies of packets between hosts in proved tables: known
    hosts, and those that may appear at the switches `senders` (bool[S]). If packets to these
    switches run in a circle, every dependency counts. With `units`, aggregation units count as
    hosts."""
    planes, wiring = proved.counts.copy(), proved.wiring
    if senders is not None and (senders.any() or units):
        wiring = with_hosts(fabric, wiring, senders, units)
        selected = led_to(fabric, senders)
        known = (fabric.terminals_at > 0) & ~np.bool_(wiring.by_hop)
        if units or (senders & ~known).any():
            selected |= wiring.destination_kind > 0
        if not proved.add_dependencies(wiring, selected, planes):
            planes[:] = 1  # in no order
    return planes[: int(wiring.lanes)]


@dataclass(frozen=True)
class LaneNumbers:
    """The channel numbers of one virtual lane."""

    lane: int
    channels: int
    """Live channels that have a number."""
    falling: int
    """Pairs of channels that packets of hosts take one after the other, along which the number does
    not rise."""
    first: str
    """The first such pair, with the names of its channels; empty if the numbers rise everywhere."""

    @property
    def rising(self) -> bool:
        """Whether the numbers rise along every path between hosts."""
        return not self.falling


def judge_certificate(
    fabric: Fabric, proved: ProvedTables, senders: Bool | None, numbers: U32
) -> tuple[LaneNumbers, ...]:
    """Each lane of `numbers`, uint32[L, S, P] on the fabric's indices, for tables that passed the
    check. `senders` bool[S] are switches at which unknown hosts may send. A packet that changes
    lanes counts in the lane that it leaves."""
    wiring = proved.wiring
    graph = Dependencies(wiring, host_planes(fabric, proved, senders))
    falls = graph.falling(numbers.ravel())
    before, after = graph.before[falls], graph.after[falls]
    channels, ports = wiring.switches * int(wiring.ports), int(wiring.ports)

    def named(node: int) -> str:
        name = fabric.channel_name(int(fabric.channel_by_port[divmod(node % channels, ports)]))
        return name + (f" in lane {node // channels}" if node // channels != lane else "")

    lanes = []
    for lane in range(len(numbers)):
        first, pairs = "", np.flatnonzero(before // channels == lane)
        if len(pairs):
            ends = [int(end[pairs[0]]) for end in (before, after)]
            shown = [f"number {n}" if n else "no number" for n in numbers.ravel()[ends]]
            first = ", then ".join(f"{named(n)} ({s})" for n, s in zip(ends, shown, strict=True))
        numbered = int((numbers[lane] > 0)[wiring.live].sum())
        lanes.append(LaneNumbers(lane, numbered, len(pairs), first))
    return tuple(lanes)
