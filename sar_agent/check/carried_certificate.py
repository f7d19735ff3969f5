"""Judges the certificate that a routes file carries: do its numbers rise along every path?

The dependencies are counted from the tables, so nothing that the file says of itself is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.check.certificate import host_planes
from sar_agent.check.proof import ProvedTables
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32, Bool


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
    planes, wiring = host_planes(fabric, proved, senders), proved.wiring
    ports = int(wiring.ports)
    following = wiring.next.reshape(wiring.switches, ports + 1).astype(np.int64)
    live = following[:, :-1] < wiring.switches
    lanes = []
    for lane, plane in enumerate(planes):
        s, p, q = np.unravel_index(np.flatnonzero(plane), (wiring.switches, ports, ports))
        joined = live[s, p] & (q > 0)
        s, p, q = s[joined], p[joined], q[joined]
        w = following[s, p]
        onward = live[w, q]
        s, p, q, w = s[onward], p[onward], q[onward], w[onward]
        then = np.full(len(s), lane)
        if proved.hops is not None:
            then = proved.hops.lane[w, proved.hops.entry[s, p], q]
        old, new = numbers[lane, s, p], numbers[then, w, q]
        falls = np.flatnonzero((old == 0) | (old >= new))
        first = ""
        if len(falls):
            at = falls[0]
            names = [
                fabric.channel_name(int(fabric.channel_by_port[end]))
                for end in ((s[at], p[at]), (w[at], q[at]))
            ]
            if then[at] != lane:
                names[1] += f" in lane {then[at]}"
            shown = [f"number {n}" if n else "no number" for n in (old[at], new[at])]
            first = f"{names[0]} ({shown[0]}), then {names[1]} ({shown[1]})"
        lanes.append(LaneNumbers(lane, int((numbers[lane] > 0)[live].sum()), len(falls), first))
    return tuple(lanes)
