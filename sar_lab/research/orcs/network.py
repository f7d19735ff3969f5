"""`Network`: hosts, directed links, and the link that packets to each host take, as in ORCS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32, U64
from sar_agent.routing.routes import NO_ROUTE, Routes

NONE = np.uint32(0xFFFFFFFF)


class Network(NamedTuple):
    """H hosts, E links, N nodes with tables: switches, and hosts with more than one way out."""

    guid: U64
    """uint64[H]"""
    name: tuple[str, ...]
    """H names, for error messages."""
    hop: U32
    """uint32[N, H]: the link from node v for packets to a host, `NONE` where no link leads
    there."""
    head: U32
    """uint32[E]: where a link ends: a node, or N + h for a host that has no table."""
    enter: U32
    """uint32[H]: the only link out of a host, `NONE` for a host that has a table."""
    place: U32
    """uint32[H]: as in `head`."""


def network_of_routes(fabric: Fabric, routes: Routes) -> Network:
    """LID offset 0 between live host ports. Links: the channels, then each host's to its leaf
    switch, then those back."""
    host = np.flatnonzero(fabric.is_host_port)
    hosts, channels = len(host), fabric.channels
    if hosts < 2:
        raise Unserved(f"{fabric.name} has fewer than two live host ports")
    number = np.arange(hosts, dtype=np.uint32)
    hop = fabric.channel_by_port[
        np.arange(fabric.switches)[None, :], routes.egress[0, host]
    ].astype(np.uint32)
    hop[routes.egress[0, host] == NO_ROUTE] = NONE
    hop[hop < channels] = np.where(
        fabric.channel_up[hop[hop < channels]], hop[hop < channels], NONE
    )
    leaf = fabric.terminal_switch[host]
    last = routes.egress[0, host, leaf] == fabric.destination_port[host]
    hop[number, leaf] = np.where(last, channels + hosts + number, NONE)
    ends = [fabric.channel_target, leaf, fabric.switches + number]
    return Network(
        fabric.terminal_guid[host],
        tuple(fabric.destination_name(int(t)) for t in host),
        np.ascontiguousarray(hop.T),
        np.concatenate(ends).astype(np.uint32),
        (channels + number).astype(np.uint32),
        (fabric.switches + number).astype(np.uint32),
    )
