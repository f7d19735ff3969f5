"""The live network in compressed sparse rows (CSR), as kernels read it.

The channels that leave switch s are `offset[s]:offset[s + 1]`. Kernels index with *unsigned*
integers: numba must test a signed index for Python's wrap-around from the end, and in a loop of two
loads and an addition that test costs three quarters of the time (measured: 6.5 ns an edge signed,
1.6 ns unsigned).

There are two views, not one, because a call of a kernel counts references of every array that it is
handed: a kernel that runs for each switch of each tree takes `Graph`, which is the smaller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import U8, U32, Bool, Fabric


class Graph(NamedTuple):
    """Switches as nodes, channels as edges."""

    offset: U32
    """uint32[S + 1]"""
    target: U32
    """uint32[C]"""
    port: U8
    """uint8[C]: egress port at the source."""
    up: Bool
    """bool[C]: whether the cable works."""
    rank: U32
    """uint32[S]: place of each switch among all by GUID. Ties are broken by it, not by index, so
    that the order in which a file lists switches changes no route."""


def graph_of(fabric: Fabric) -> Graph:
    """The fabric's switches and channels, in O(C + S log S).

    >>> from sar_agent.fabric.spec import load_fabric
    >>> ring = graph_of(load_fabric("torus:4"))
    >>> ring.target[ring.offset[0] : ring.offset[1]].tolist()
    [1, 3]
    """
    return Graph(
        fabric.channel_offset.astype(np.uint32),
        fabric.channel_target.astype(np.uint32),
        fabric.channel_port.astype(np.uint8),
        fabric.channel_up,
        np.argsort(np.argsort(fabric.switch_guid)).astype(np.uint32),
    )


class ChannelGraph(NamedTuple):
    """Channels as nodes: what can follow a channel are those that leave the switch it enters.

    P is one more than the highest port of the fabric, so that ports are 0 … P - 1.
    """

    offset: U32
    """uint32[S + 1]"""
    source: U32
    """uint32[C]"""
    target: U32
    """uint32[C]"""
    reverse: U32
    """uint32[C]: the other direction of the same cable."""
    port: U8
    """uint8[C]: egress port at the source."""
    channel: U32
    """uint32[S, P + 1]: the live channel that leaves a switch by a port; C where there is none, as
    by all ports from P on (column P)."""


def channel_graph_of(fabric: Fabric) -> ChannelGraph:
    """The fabric's channels, in O(C + S P).

    >>> from sar_agent.fabric.spec import load_fabric
    >>> ring = channel_graph_of(load_fabric("torus:4"))
    >>> out = ring.channel[0, ring.port[0]]
    >>> int(out), int(ring.source[out]), int(ring.target[out])
    (0, 0, 1)
    """
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    channel = np.full((fabric.switches, ports + 1), fabric.channels, np.uint32)
    live = np.flatnonzero(fabric.channel_up)
    channel[fabric.channel_source[live], fabric.channel_port[live]] = live
    return ChannelGraph(
        fabric.channel_offset.astype(np.uint32),
        fabric.channel_source.astype(np.uint32),
        fabric.channel_target.astype(np.uint32),
        fabric.channel_reverse.astype(np.uint32),
        fabric.channel_port.astype(np.uint8),
        channel,
    )
