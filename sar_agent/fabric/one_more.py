"""A fabric with one switch more, cabled like one that is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder, Terminal
from sar_agent.fabric.generate import MOST_PORTS
from sar_agent.fabric.model import Fabric
from sar_agent.util.plural import plural


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
            raise InputError(f'"{fabric.switch_name[far]}" would need {plural(port, "port")}')
        taken[far].add(port)
        cables.append((int(fabric.channel_port[c]), far, port, float(fabric.channel_rate[c])))

    builder = FabricBuilder(fabric.name)
    builder.lmc = fabric.lmc
    columns: Any = (fabric.switch_guid, fabric.switch_name, ports, fabric.switch_lid,
                    fabric.switch_position)  # fmt: skip
    for own, called, number, lid, position in _rows(columns):
        builder.add_switch(own, called, number, lid=lid, position=position)
    last = int(max(fabric.switch_position.max(), fabric.terminal_position.max(initial=0)))
    guid = int(fabric.switch_guid.max()) + 1
    new = builder.add_switch(guid, f"one more {name}", int(ports[like]), position=last + 1)
    terminals = (getattr(fabric, f"terminal_{column}") for column in Terminal._fields)
    builder.terminals += map(Terminal._make, _rows(terminals))
    once = np.flatnonzero(np.arange(fabric.channels) < fabric.channel_reverse)
    far_port = fabric.channel_port[fabric.channel_reverse]
    columns = (fabric.channel_source, fabric.channel_port, fabric.channel_target, far_port,
               fabric.channel_up, fabric.channel_rate)  # fmt: skip
    for *ends, live, rate in _rows(column[once] for column in columns):
        builder.add_link(*ends, up=live, rate=rate)
    for near, far, port, rate in cables:
        builder.add_link(new, near, far, port, rate=rate)
    return Enlarged(builder.build(), tuple(full))


def _rows(columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of plain numbers and texts."""
    plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in columns)
    return zip(*plain, strict=True)
