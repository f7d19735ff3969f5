"""What changed between two dumps of one fabric: before and after a maintenance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import Fabric

End = tuple[int, int]
"""GUID of a switch, or of a host's port, and the number of the port."""


class _Seen(NamedTuple):
    """A fabric by GUIDs. Links that are down are not there."""

    nodes: dict[int, str]
    cables: dict[tuple[End, End], str]
    """Both ends, the lower first, to `4xHDR`."""


def cable_changes(before: Fabric, after: Fabric) -> tuple[str, ...]:
    """A sentence on each switch, host port and cable that is gone or new, and each cable with
    another speed. Neither names nor the order of a file matter. Cables of nodes that are themselves
    gone or new are not listed. Raises `InputError` where the two have no node in common."""
    old, new = _seen(before), _seen(after)
    both = old.nodes.keys() & new.nodes
    if not both:
        raise InputError(
            f"{before.name} has no switch and no host of {after.name}",
            remedy="give an earlier dump of the same fabric",
        )
    names = old.nodes | new.nodes
    said = [
        f"{names[guid]} is {what}"
        for what, these, those in (("gone", old, new), ("new", new, old))
        for guid in sorted(these.nodes.keys() - those.nodes, key=names.__getitem__)
    ]
    for cable in sorted(old.cables.keys() | new.cables, key=lambda c: (names[c[0][0]], c)):
        if not {guid for guid, _ in cable} <= both:
            continue
        was, now = old.cables.get(cable), new.cables.get(cable)
        words = " – ".join(f"{names[guid]}[{port}]" for guid, port in cable)
        if was is None or now is None:
            said.append(f"{words} is {'gone' if now is None else 'new'}")
        elif was != now:
            said.append(f"{words} is {now}, was {was}")
    return tuple(said)


def _seen(fabric: Fabric) -> _Seen:
    guid, port = fabric.switch_guid.tolist(), fabric.channel_port.tolist()
    nodes = {guid[s]: f'"{fabric.switch_name[s]}"' for s in np.flatnonzero(fabric.switch_up)}
    cables = {}
    for c in np.flatnonzero(fabric.channel_up).tolist():
        back = int(fabric.channel_reverse[c])
        near = guid[fabric.channel_source[c]], port[c]
        far = guid[fabric.channel_target[c]], port[back]
        if near < far:
            cables[near, far] = fabric.channel_speed(c)
    for t in np.flatnonzero(fabric.is_host_port).tolist():
        own = int(fabric.terminal_guid[t])
        nodes[own] = f'"{fabric.terminal_description[t]}"'
        near = own, int(fabric.terminal_port_number[t])
        far = guid[fabric.terminal_switch[t]], int(fabric.terminal_switch_port[t])
        cables[min(near, far), max(near, far)] = fabric.terminal_speed(t)
    return _Seen(nodes, cables)
