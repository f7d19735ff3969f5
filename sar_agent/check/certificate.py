"""The certificate that a plan carries: which paths its channel numbers cover, and which are kept.

A reader of the routes file sees terminals, but not which of them are aggregation units, and
switches at which unknown hosts may send. So the numbers rise along the paths from all switches with
either of these to the LIDs of all of them. They do not cover the other switches' LIDs: between
spines these paths turn from down to up, and an order that serves them leaves less room for other
tables and for repairs.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sar_agent.check.channel_numbers import Planes, channel_numbers, dependencies_rise
from sar_agent.check.proof import ProvedTables
from sar_agent.check.unknown_senders import UnknownSenders
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.fabric.tree import tree_levels


def certificate_of(
    fabric: Fabric, proved: ProvedTables, senders: Bool, kept: U32 | None = None
) -> U32:
    """The channel numbers of proved tables, uint32[L, S, P]: `kept`, those of earlier tables, where
    they rise and number all live channels, so that both can be mixed in that order; else new ones.

    `senders` bool[S] are switches at which unknown hosts may send (`senders_proved`). Where paths
    of aggregation units close a cycle, these are not covered (`covers_units`)."""
    used = host_planes(fabric, proved, senders)
    for wanted in (_with_units(fabric, proved, senders, used), used):
        if kept is not None and _serves(proved, wanted, kept):
            return kept
        numbers = channel_numbers(fabric, proved.wiring, wanted, proved.hops)
        if numbers is not None:
            return numbers
    raise AssertionError("unreachable: routes that passed the check have an order")


def covers_units(fabric: Fabric, proved: ProvedTables, senders: Bool, numbers: U32) -> bool:
    """Whether the numbers, which rise along the paths of hosts, rise along those of aggregation
    units, too. A reader of the file cannot tell them apart: without that, it has no certificate."""
    if not _units(fabric).any():
        return True
    wanted = _with_units(fabric, proved, senders, host_planes(fabric, proved, senders))
    return dependencies_rise(proved.wiring, wanted, numbers, proved.hops)


def _units(fabric: Fabric) -> Bool:
    """bool[T]: live aggregation units."""
    units: Bool = fabric.terminal_up & ~fabric.is_host_port
    return units


def _with_units(fabric: Fabric, proved: ProvedTables, senders: Bool, used: U8) -> U8:
    """`used` and the dependencies of aggregation units: the same array where there are no units."""
    units = _units(fabric)
    if not units.any():
        return used
    paths, none, planes = UnknownSenders(fabric, proved), np.zeros_like(senders), used.copy()
    at_units = none.copy()
    at_units[fabric.terminal_switch[units]] = True
    asked = np.concatenate([units, none])
    paths.follow_to(paths.hosts | senders | at_units, senders, asked, planes)
    paths.follow(at_units, senders, True, senders, planes)
    return planes


def host_planes(fabric: Fabric, proved: ProvedTables, senders: Bool | None) -> U8:
    """uint8[L, S · P · P]: the dependencies of hosts in proved tables, known ones and those that
    may be at the switches `senders` (bool[S])."""
    used: U8 = (proved.counts[: int(proved.wiring.lanes)] > 0).view(np.uint8)
    if senders is None or not senders.any():
        return used
    paths = UnknownSenders(fabric, proved)
    paths.follow(paths.hosts | senders, senders, False, senders, used)
    new = senders if proved.hops else senders & ~paths.hosts
    if new.any():
        paths.follow(new, senders, True, np.zeros_like(senders), used)
    return used


def _serves(proved: ProvedTables, planes: Planes, numbers: U32) -> bool:
    """Whether the numbers rise, and every live channel has one in all lanes."""
    wiring = proved.wiring
    live = wiring.next.reshape(wiring.switches, -1)[:, :-1] < wiring.switches
    return dependencies_rise(wiring, planes, numbers, proved.hops) and bool(numbers[:, live].all())


@lru_cache(maxsize=2)
def host_places(fabric: Fabric) -> Bool:
    """bool[S]: switches at which a plan should expect unknown hosts: all but the upper switches of
    a tree without hosts. Paths to these would have to be repaired as those to hosts, and if a cable
    to a spine dies, no path that goes up and then down leads from that leaf switch to it.

    A switch without hosts is a leaf switch if two of the switches above it are also above one
    leaf switch with hosts. The result is kept, so it cannot be written to."""
    try:
        level = tree_levels(fabric)
    except Unserved:
        return np.ones(fabric.switches, np.bool_)
    hosts = fabric.terminals_at > 0
    up = fabric.channel_up & (level[fabric.channel_source] != level[fabric.channel_target])
    joined = np.zeros((fabric.switches, fabric.switches), np.bool_)
    joined[fabric.channel_source[up], fabric.channel_target[up]] = True
    empty, above = np.flatnonzero(~hosts & (level == 2)), np.flatnonzero(level == 1)
    leaves = np.flatnonzero(level == 0)
    near = joined[np.ix_(empty, above)].astype(np.float32)
    shared = near @ joined[np.ix_(above, leaves)].astype(np.float32)
    places: Bool = hosts | (level == 0)
    places[empty] = (shared >= 2).any(axis=1)
    places.flags.writeable = False
    return places
