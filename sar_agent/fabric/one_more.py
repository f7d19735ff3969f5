"""A fabric with one switch more, cabled like one that is there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import MOST_PORTS
from sar_agent.fabric.model import Fabric, Kind


class Enlarged(NamedTuple):
    """The fabric, and the switches on which the dump shows no free port for the new cable."""

    fabric: Fabric
    full: tuple[str, ...]


def with_one_more(fabric: Fabric, like: int) -> Enlarged:
    """`fabric` with a switch that has a cable wherever switch `like` has a live one, at free ports.
    Where a neighbour has none, the cable gets a port of its own all the same. Raises `InputError`
    for a switch without live cables to others, and where a switch would need more than 254 ports.
    """
    up = np.flatnonzero(fabric.channel_up & (fabric.channel_source == like))
    name = fabric.switch_name[like]
    if not len(up):
        raise InputError(f'"{name}" has no live cable to a switch', remedy="name another one")
    taken = [set[int]() for _ in range(fabric.switches)]
    for switch, port in (
        *zip(fabric.channel_source.tolist(), fabric.channel_port.tolist(), strict=True),
        *zip(fabric.terminal_switch.tolist(), fabric.terminal_switch_port.tolist(), strict=True),
    ):
        taken[switch].add(port)
    ports, full, cables = fabric.switch_ports.copy(), dict[str, None](), []
    for c in up.tolist():
        far = int(fabric.channel_target[c])
        port = min(set(range(1, MOST_PORTS + 2)) - taken[far])
        if port > ports[far]:
            full[fabric.switch_name[far]] = None
            ports[far] = port
        if port > MOST_PORTS:
            raise InputError(f'"{fabric.switch_name[far]}" would need {port} ports')
        taken[far].add(port)
        cables.append((int(fabric.channel_port[c]), far, port, float(fabric.channel_rate[c])))

    builder = FabricBuilder(fabric.name)
    builder.lmc = fabric.lmc
    for s in range(fabric.switches):
        builder.add_switch(
            int(fabric.switch_guid[s]), fabric.switch_name[s], int(ports[s]),
            lid=int(fabric.switch_lid[s]), position=int(fabric.switch_position[s]),
        )  # fmt: skip
    last = int(max(fabric.switch_position.max(), fabric.terminal_position.max(initial=0)))
    guid = int(fabric.switch_guid.max()) + 1
    new = builder.add_switch(guid, f"one more {name}", int(ports[like]), position=last + 1)
    for t in range(fabric.terminals):
        builder.add_terminal(
            int(fabric.terminal_guid[t]), fabric.terminal_description[t], fabric.terminal_host[t],
            int(fabric.terminal_switch[t]), int(fabric.terminal_switch_port[t]),
            node_guid=int(fabric.terminal_node_guid[t]),
            port_number=int(fabric.terminal_port_number[t]),
            kind=Kind(int(fabric.terminal_kind[t])), lid=int(fabric.terminal_lid[t]),
            up=bool(fabric.terminal_up[t]), rate=float(fabric.terminal_rate[t]),
            position=int(fabric.terminal_position[t]),
        )  # fmt: skip
    for c in range(fabric.channels):
        back = int(fabric.channel_reverse[c])
        if c < back:
            builder.add_link(
                int(fabric.channel_source[c]), int(fabric.channel_port[c]),
                int(fabric.channel_target[c]), int(fabric.channel_port[back]),
                up=bool(fabric.channel_up[c]), rate=float(fabric.channel_rate[c]),
            )  # fmt: skip
    for near, far, port, rate in cables:
        builder.add_link(new, near, far, port, rate=rate)
    return Enlarged(builder.build(), tuple(full))
