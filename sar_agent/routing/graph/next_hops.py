"""What a kernel needs to follow one destination's forwarding table from switch to switch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool


class NextHops(NamedTuple):
    """Where each port leads, and where each destination is."""

    channel_by_port: U32
    """uint32[S, 256]: the channel behind a port; above all channels where there is none."""
    target: U32
    """uint32[C]"""
    root: U32
    """uint32[D]: the last switch before each destination."""


def next_hops_of(fabric: Fabric, *, live: bool = False) -> NextHops:
    """Along all channels, or along `live` ones only. O(1), or O(256 S) with `live`.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> fabric = load_fabric("torus:4")
    >>> hops, port = next_hops_of(fabric), fabric.channel_port[0]
    >>> int(hops.target[hops.channel_by_port[0, port]])
    1
    """
    channel = fabric.channel_by_port
    if live:
        up = fabric.channel_up & fabric.switch_up[fabric.channel_target]
        channel = np.where((channel >= 0) & up[np.maximum(channel, 0)], channel, np.int32(-1))
    return NextHops(
        channel.view(np.uint32),
        fabric.channel_target.view(np.uint32),
        fabric.destination_switch.view(np.uint32),
    )


def channels_along(fabric: Fabric, table: U8, source: I32, target: I32) -> tuple[I32, Bool]:
    """(int32[N, hops]: the channels that each flow between terminals crosses in `table`
    uint8[T + S, S], then -1; bool[N]: whether it arrives). O(N · hops)."""
    at, goal = fabric.terminal_switch[source], fabric.terminal_switch[target]
    crossed: list[I32] = []
    away = np.flatnonzero(at != goal)
    while len(away) and len(crossed) < fabric.switches:
        channel = fabric.channel_by_port[at[away], table[target[away], at[away]]]
        away, channel = away[channel >= 0], channel[channel >= 0]
        at[away] = fabric.channel_target[channel]
        crossed.append(np.full(len(at), -1, np.int32))
        crossed[-1][away] = channel
        away = away[at[away] != goal[away]]
    return np.array(crossed, np.int32).reshape(len(crossed), len(at)).T, at == goal
