"""Dragonflies: groups of fully meshed switches, and routes local, global, local.

Shortest paths alone do not make such routes: global, local, global over a third group is as short,
and with both kinds among the tables lanes hop by hop do not exist. Told from the cables: in a group
every two switches share all the others as neighbours, over a global cable they share next to none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.routes import NO_ROUTE


@dataclass(frozen=True)
class Meshes:
    """G groups of S switches."""

    group: I32
    """int32[S]"""
    local: U8
    """uint8[S, S within a group]: port to each member, by `member`; 0 for itself."""
    member: I32
    """int32[S]: place within the group."""
    gate: I32
    """int32[G, G, most cables]: switches with a cable to the other group, then repeated."""
    own: U8
    """uint8[S, G]: port of an own cable to each group; 0 where there is none."""


def meshes_of(fabric: Fabric) -> Meshes | None:
    """The groups; None where the live fabric is no Dragonfly with a cable between every two."""
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
    group = _pieces(switches, source[inside], target[inside])
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
    return Meshes(group, local, member, gate, own)


def _pieces(switches: int, source: I32, target: I32) -> I32:
    """int32[S]: connected pieces, numbered by their first switch."""
    lowest = np.arange(switches)
    while True:
        before = lowest.copy()
        np.minimum.at(lowest, target, before[source])
        if np.array_equal(before, lowest):
            return np.unique(lowest, return_inverse=True)[1].astype(np.int32)


def lanes_after_global(fabric: Fabric, meshes: Meshes) -> U8:
    """`Routes.hop_lane` for such routes: lane 1 for what came over a global cable, else 0.

    A packet takes a local channel before its global one, in lane 0, or after it, in lane 1: so
    nothing that waits for a global channel holds what such a channel's packets wait for.
    """
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    lane = np.zeros((fabric.switches, ports, ports), np.uint8)
    into = np.flatnonzero(
        meshes.group[fabric.channel_source] != meshes.group[fabric.channel_target]
    )
    lane[fabric.channel_source[into], fabric.channel_port[into]] = 1
    return lane


def local_global_local(fabric: Fabric, meshes: Meshes) -> U8:
    """uint8[T + S, S]: by an own cable to the destination's group, else by that of a neighbour;
    neighbours with one take turns by destination."""
    group, member = meshes.group, meshes.member
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    everyone, most = np.arange(fabric.switches), meshes.gate.shape[2]
    by_root = np.argsort(fabric.destination_switch, kind="stable")
    cuts = np.searchsorted(fabric.destination_switch[by_root], np.arange(fabric.switches + 1))
    for root in range(fabric.switches):
        home = group[root]
        own = meshes.own[:, home]
        dests = by_root[cuts[root] : cuts[root + 1]]
        for turn in range(min(most, len(dests))):
            via = meshes.gate[group, home, (root + turn) % most]
            port = np.where(own > 0, own, meshes.local[everyone, member[via]])
            port = np.where(group == home, meshes.local[:, member[root]], port)
            egress[dests[turn::most]] = port
        egress[dests, root] = fabric.destination_port[dests]
    return egress
