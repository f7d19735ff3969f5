"""Cables and switches that differ from most of their like: what to repair before routes.

Cables between switches are alike if their ends are at the same two levels, and if the slower of
their switches has the same speed: a switch of an older generation, all of whose cables have its
speed, is no fault. Slower and narrower cables come first, the worst of them first; then cables that
are missing (`missing_cables.py`); then hosts with fewer ports, and older kinds of hosts
(`odd_hosts.py`).

**Weak spot:** a fabric that was built uneven (an island with half the uplinks) is reported, too, as
far as the uneven part is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sar_agent.fabric.cable_names import cable_name
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.missing_cables import missing_cables
from sar_agent.fabric.model import F32, I64, Fabric
from sar_agent.fabric.odd_hosts import odd_hosts
from sar_agent.fabric.unlike import Odd, slower

_FEW = 4
"""Fewer cables that are alike say nothing of each other; the speed of their switches does."""
JUDGED = 3
"""Cables that a switch needs, so that the fastest of them is its own speed."""


@dataclass(frozen=True)
class OddCables:
    """What differs, and the fabric with all slow cables between switches as fast as their like."""

    odd: tuple[Odd, ...]
    slow: int
    """The number of slow cables between switches."""
    repaired: Fabric

    @property
    def sentences(self) -> tuple[str, ...]:
        """One for each."""
        return tuple(each.sentence for each in self.odd)


def odd_cables(fabric: Fabric) -> OddCables:
    """What is odd among live cables, the worst first."""
    level = levels_of(fabric).astype(np.int64)
    own = own_speeds(fabric)
    rate = fabric.channel_rate.copy()
    trunks = [*_slow_trunks(fabric, level, own, rate)]
    found = [*trunks, *missing_cables(fabric, level), *odd_hosts(fabric, own)]
    found.sort(key=lambda each: each.rank)
    return OddCables(tuple(found), len(trunks), replace(fabric, channel_rate=rate))


def own_speeds(fabric: Fabric) -> F32:
    """float32[S]: the speed of each switch, which is that of its fastest cable; that of the fastest
    switch where it has too few cables to tell."""
    live, edges = fabric.channel_up, fabric.is_host_port
    switch = np.concatenate([fabric.channel_source[live], fabric.terminal_switch[edges]])
    rates = np.concatenate([fabric.channel_rate[live], fabric.terminal_rate[edges]])
    fastest = np.zeros(fabric.switches, np.float32)
    np.maximum.at(fastest, switch, rates)
    fastest[np.bincount(switch, minlength=fabric.switches) < JUDGED] = rates.max(initial=0)
    return fastest


def _slow_trunks(fabric: Fabric, level: I64, own: F32, repaired: F32) -> Iterator[Odd]:
    """Slow cables between switches, whose rates in `repaired` become that of their like."""
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source[live], fabric.channel_target[live]
    limit = np.minimum(own[source], own[target])
    low, high = np.minimum(level[source], level[target]), np.maximum(level[source], level[target])
    _, kind = np.unique(np.stack([low, high, limit], axis=1), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    lanes = fabric.channel_lanes if len(fabric.channel_lanes) else np.zeros(fabric.channels, int)
    for k in np.unique(kind):
        at = np.flatnonzero(kind == k)
        alike = live[at]
        usual, odd, _ = slower(fabric.channel_rate[alike], lanes[alike])
        if len(alike) < 2 * _FEW:  # both directions
            usual = int(np.argmax(fabric.channel_rate[alike]))
            odd = fabric.channel_rate[alike] < fabric.channel_rate[alike[usual]]
        best = float(fabric.channel_rate[alike[usual]])
        repaired[alike[odd]] = best
        for c in alike[odd].tolist():
            if c < fabric.channel_reverse[c]:
                among = fabric.channel_speed(int(alike[usual]))
                sentence = f"{cable_name(fabric, c)} is {fabric.channel_speed(c)} among {among}"
                yield Odd(sentence, (c,), rank=(0, fabric.channel_rate[c] / best, int(lanes[c]), 0))
