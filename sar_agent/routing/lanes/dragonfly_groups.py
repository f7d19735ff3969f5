"""Dragonflies: groups of fully meshed switches, and routes local, global, local.

J. Kim et al., "Technology-driven, highly-scalable Dragonfly topology", ISCA 2008. Shortest paths
alone do not make such routes: global, local, global over a third group is as short, and tables with
both kinds allow no lanes hop by hop. Groups are recognised by their cables: two switches of one
group share all others of it as neighbours, two at the ends of a global cable share hardly any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_of
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.routes import NO_ROUTE


@dataclass(frozen=True)
class DragonflyGroups:
    """The G groups of S switches."""

    group: I32
    """int32[S]: the group of each switch."""
    local: U8
    """uint8[S, S within a group]: port to each member, by `member`; 0 for itself."""
    member: I32
    """int32[S]: place of each switch within its group."""
    gate: I32
    """int32[G, G, most cables]: the switches of a group with a cable to another, then repeated."""
    own: U8
    """uint8[S, G]: port of a switch's own cable to each group; 0 where it has none."""


def dragonfly_groups_of(fabric: Fabric) -> DragonflyGroups | None:
    """The groups; None where the live fabric is no Dragonfly with a cable between every two groups.
    O(S³) for the neighbours that switches share, as one product of matrices."""
    switches = fabric.switches
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source[live], fabric.channel_target[live]
    if not len(live):
        return None
    near = np.zeros((switches, switches), np.float32)
    near[source, target] = 1
    shared = (near @ near)[source, target]
    inside = shared * 2 > shared.max()
    if inside.all() or shared.max() < 1:
        return None
    component = components_of(switches, source[inside], target[inside])
    group = np.unique(component, return_inverse=True)[1].astype(np.int32)
    inside = group[source] == group[target]
    groups, size = int(group.max()) + 1, np.bincount(group)
    members = np.zeros((switches, switches), np.bool_)
    members[source[inside], target[inside]] = True
    if (members.sum(axis=1) != size[group] - 1).any():
        return None
    member = np.zeros(switches, np.int32)
    for g in range(groups):
        at = np.flatnonzero(group == g)
        member[at] = np.arange(len(at))
    local = np.zeros((switches, int(size.max())), np.uint8)
    port = fabric.channel_port[live].astype(np.uint8)
    local[source[inside], member[target[inside]]] = port[inside]
    own = np.zeros((switches, groups), np.uint8)
    own[source[~inside][::-1], group[target[~inside]][::-1]] = port[~inside][::-1]
    gates = [
        [np.flatnonzero((group == g) & (own[:, h] > 0)) for h in range(groups)]
        for g in range(groups)
    ]
    if any(not len(gates[g][h]) for g in range(groups) for h in range(groups) if g != h):
        return None
    most = max(len(at) for row in gates for at in row)
    gate = np.full((groups, groups, most), -1, np.int32)
    for g in range(groups):
        for h in range(groups):
            if g != h:
                gate[g, h] = np.resize(gates[g][h], most)
    return DragonflyGroups(group, local, member, gate, own)


def lanes_after_global(fabric: Fabric, dragonfly: DragonflyGroups) -> U8:
    """`Routes.hop_lane` for such routes: lane 1 after a global cable, else lane 0.

    A packet takes a local channel before its global one, in lane 0, or after it, in lane 1. So no
    packet that waits for a global channel holds a channel that packets on global channels wait for.
    """
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    lane = np.zeros((fabric.switches, ports, ports), np.uint8)
    into = np.flatnonzero(
        dragonfly.group[fabric.channel_source] != dragonfly.group[fabric.channel_target]
    )
    lane[fabric.channel_source[into], fabric.channel_port[into]] = 1
    return lane


def local_global_local(fabric: Fabric, dragonfly: DragonflyGroups) -> U8:
    """uint8[T + S, S]: each switch takes its own cable to the destination's group, or else goes to
    a neighbour that has one; these neighbours take turns by destination."""
    group, member = dragonfly.group, dragonfly.member
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    everyone, most = np.arange(fabric.switches), dragonfly.gate.shape[2]
    by_root = np.argsort(fabric.destination_switch, kind="stable")
    cuts = np.searchsorted(fabric.destination_switch[by_root], np.arange(fabric.switches + 1))
    for root in range(fabric.switches):
        home = group[root]
        own = dragonfly.own[:, home]
        dests = by_root[cuts[root] : cuts[root + 1]]
        for turn in range(min(most, len(dests))):
            via = dragonfly.gate[group, home, (root + turn) % most]
            port = np.where(own > 0, own, dragonfly.local[everyone, member[via]])
            port = np.where(group == home, dragonfly.local[:, member[root]], port)
            egress[dests[turn::most]] = port
        egress[dests, root] = fabric.destination_port[dests]
    return egress
