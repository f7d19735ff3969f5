"""Which single failure hurts most: all are ranked by an estimate, and as many as half a minute
allows are routed and proved, the worst first; on fabrics of up to some hundred switches, all.

The estimate needs no routes: the load of a dead channel is spread over the channels that its
switch has left in the same direction (to the same level of the tree, or to any), and of a dead
switch that of each neighbour's channels to it. Hosts of jobs that are lost come first.

**Weak spot:** the estimate fits engines that balance jobs: the ten worst failures of `sar-plus` are
among its first 50 in 12 of 12 cases (two mixes on six fabrics), two to eight of them among its
first ten. Others reroute elsewhere, too: `ftree` has nine or ten in 11 cases and none in one,
`dfsssp` one to ten, `minhop` none to ten (`python -m tests.bench what-if`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.reports.places import Places
from sar_agent.reports.site_dumps import SiteDumps

LEAST_ROUTED, ENTRIES_ROUTED = 50, 150_000_000
"""Failures that are routed, whatever the fabric; and table entries to compute for more of them."""


class Estimate(NamedTuple):
    """One failure, and how bad it looks."""

    lost: int
    """Terminals of jobs that lose their switch."""
    load: float
    """The largest load that its neighbours' channels would carry."""
    places: Places


def ranked_failures(dumps: SiteDumps) -> list[Estimate]:
    """All live switches and cables between switches, the worst first."""
    fabric = dumps.fabric
    load = dumps.traffic.load * fabric.channel_rate
    source, target = fabric.channel_source, fabric.channel_target
    level = levels_of(fabric).astype(np.int64)
    direction = np.sign(level[target] - level[source])
    group = source.astype(np.int64) * 3 + direction + 1
    up = fabric.channel_up
    carried = np.bincount(group[up], weights=load[up], minlength=3 * fabric.switches)
    room = np.bincount(group[up], weights=fabric.channel_rate[up], minlength=3 * fabric.switches)

    def spread(dead: list[int]) -> float:
        """The largest share that what is left of the groups of `dead` would carry."""
        groups, place = np.unique(group[dead], return_inverse=True)
        left = room[groups] - np.bincount(place, weights=fabric.channel_rate[dead])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(carried[groups] > 0, carried[groups] / left, 0.0)
        return float(np.where(left <= 0, np.where(carried[groups] > 0, np.inf, 0.0), share).max())

    found = []
    for c in np.flatnonzero(up).tolist():
        back = int(fabric.channel_reverse[c])
        if c < back:
            found.append(Estimate(0, spread([c, back]), Places(channels=(c,))))
    on_switch = np.bincount(fabric.terminal_switch[dumps.mix.terminal], minlength=fabric.switches)
    for s in np.flatnonzero(fabric.switch_up).tolist():
        into = np.flatnonzero(up & (target == s)).tolist()
        if into:
            found.append(Estimate(int(on_switch[s]), spread(into), Places(switches=(s,))))
    return sorted(found, key=lambda each: (-each.lost, -each.load, each.places.switches))


def worst_failures(ranked: list[Estimate], fabric: Fabric) -> list[Estimate]:
    """Those to route: up to a fifth that lose hosts of jobs, which every leaf switch does, and the
    worst others. Their number depends on the size of the tables alone."""
    most = max(LEAST_ROUTED, ENTRIES_ROUTED // (fabric.destinations * fabric.switches))
    if most >= len(ranked):
        return ranked
    losing = [each for each in ranked if each.lost][: most // 5]
    others = [each for each in ranked if not each.lost]
    return losing + others[: most - len(losing)]
