"""Hosts that a plan does not know, as the plugin leads them: like their switch's own LID."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.routing import Routes

NEW = 1 << 62


def rebuilt(fabric: Fabric, new: np.ndarray | None = None, off: int = -1) -> Fabric:
    """The live part of a fabric, with a host more at each of the switches `new` (bool[S]),
    where those that were down are back, too, and without those at switch `off`."""
    builder = FabricBuilder("rebuilt")
    for s in range(fabric.switches):
        ports = int(fabric.switch_ports[s]) + 1
        builder.add_switch(int(fabric.switch_guid[s]), fabric.switch_name[s], ports)
    back = fabric.terminal_up | (False if new is None else new[fabric.terminal_switch])
    for t in np.flatnonzero(back & (fabric.terminal_switch != off)):
        guid, host = int(fabric.terminal_guid[t]), fabric.terminal_host[t]
        at = int(fabric.terminal_switch[t]), int(fabric.terminal_switch_port[t])
        builder.add_terminal(guid, f"{host} HCA-1", host, *at)
    for s in np.flatnonzero(new) if new is not None else ():
        port = free_port(fabric, int(s))
        builder.add_terminal(NEW + int(s), f"new{s} HCA-1", f"new{s}", int(s), port)
    for c in np.flatnonzero(fabric.channel_up):
        r = int(fabric.channel_reverse[c])
        if c < r:
            near = int(fabric.channel_source[c]), int(fabric.channel_port[c])
            builder.add_link(*near, int(fabric.channel_source[r]), int(fabric.channel_port[r]))
    return builder.build()


def free_port(fabric: Fabric, switch: int) -> int:
    """One that has no cable, else one that the switch does not have."""
    used = set(fabric.channel_port[fabric.channel_source == switch].tolist())
    used |= set(fabric.terminal_switch_port[fabric.terminal_switch == switch].tolist())
    return min(set(range(1, int(fabric.switch_ports[switch]) + 2)) - used)


def with_newcomers(fabric: Fabric, new: np.ndarray, *plans: Routes) -> tuple[Fabric, list[Routes]]:
    """The fabric with a host more at each of the switches `new`, and how plans lead to them."""
    fuller = rebuilt(fabric, new)
    rows = {int(guid): t for t, guid in enumerate(fabric.terminal_guid)}
    rows |= {NEW + s: fabric.terminals + s for s in range(fabric.switches)}
    order = [rows[int(guid)] for guid in fuller.terminal_guid]
    order += range(fabric.terminals, fabric.destinations)
    found = []
    for routes in plans:
        egress, levels, lanes = routes.egress[:, order], routes.service_level, routes.hop_lane
        for t in np.flatnonzero(fuller.terminal_guid >= NEW):
            egress[:, t, fuller.terminal_switch[t]] = fuller.terminal_switch_port[t]
        if levels is not None:
            levels = levels[:, order]
        if lanes is not None:
            more = int(fuller.switch_ports.max()) + 1 - lanes.shape[1]
            lanes = np.pad(lanes, ((0, 0), (0, more), (0, more)))
        found.append(
            replace(
                routes,
                fabric_digest=fuller.digest,
                egress=egress,
                service_level=levels,
                hop_lane=lanes,
                senders=None,
            )
        )
    return fuller, found
