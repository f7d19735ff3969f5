"""Links and hosts that this process has seen up and that are not up any more.

A fabric as OpenSM discovered it does not list a dead cable, so the fabrics of two passes are
compared. OpenSM may list the switches in another order each time, so a link is known by the ports
at both of its ends, in no order. It is down while neither of the two is up: a cable that was moved
to another port is not lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.counters.readings import place_key
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U64, Bool
from sar_agent.reports.page_box import Trouble

MOST_LOST = 1000
"""Lost links that are remembered."""
MOST_NAMED = 3


class LostLink(NamedTuple):
    """A link that went down, on the indices of the fabric before; the one that it is not is -1."""

    ends: tuple[int, int]
    """The ports at both of its ends."""
    channel: int
    terminal: int


class LostLinks:
    """Compares each fabric with the one before."""

    def __init__(self) -> None:
        self._last: Fabric | None = None
        self._switches: dict[int, tuple[str, float]] = {}
        """GUID of a switch that is gone: its name, and since when."""
        self._links: dict[tuple[int, int], tuple[str, float]] = {}
        """The ports at both ends of a link that is down: its name, and since when."""

    @property
    def links(self) -> Mapping[tuple[int, int], tuple[str, float]]:
        """Name, and since when, of all that are down, by the ports at both ends."""
        return self._links

    def see(self, fabric: Fabric) -> list[LostLink]:
        """The fabric of a pass; those that went down since the pass before. Where it is the fabric
        of that pass, nothing is done."""
        last, new = self._last, list[LostLink]()
        if last is fabric or (last is not None and last.digest == fabric.digest):
            return new
        self._last = fabric
        if last is None:
            return new
        now, up = time.time(), np.concatenate(_ends(fabric)[:2])
        alive = fabric.switch_guid[fabric.switch_up]
        dead = last.switch_up & ~np.isin(last.switch_guid, alive)
        for s in np.flatnonzero(dead).tolist():
            self._switches[int(last.switch_guid[s])] = last.switch_name[s], now
        one, other, index, is_host = _ends(last)
        for i in np.flatnonzero(~np.isin(one, up) & ~np.isin(other, up)).tolist():
            name = _lost_name(last, int(index[i]), bool(is_host[i]), dead)
            if name and len(self._links) < MOST_LOST:
                ends, host = (int(one[i]), int(other[i])), bool(is_host[i])
                self._links[ends] = name, now
                at = int(index[i])
                new.append(LostLink(ends, -1 if host else at, at if host else -1))
        known = np.array([port for ends in self._links for port in ends], np.uint64)
        lit = set(np.intersect1d(known, up).tolist())
        self._links = {ends: what for ends, what in self._links.items() if lit.isdisjoint(ends)}
        back = set(alive.tolist())
        self._switches = {g: what for g, what in self._switches.items() if g not in back}
        return new

    def troubles(self) -> tuple[Trouble, ...]:
        """One sentence on switches, one on links."""
        found = []
        for lost, one, many in (
            (self._switches, "switch", "switches"),
            (self._links, "link", "links"),
        ):
            if lost:
                names = [name for name, _ in lost.values()]
                shown = "; ".join(names[:MOST_NAMED])
                more = f"; and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
                verb = "is" if len(names) == 1 else "are"
                what = f"{len(names)} {one if len(names) == 1 else many} {verb} down"
                since = max(since for _, since in lost.values())
                found.append(Trouble(f"{what}: {shown}{more}", since))
        return tuple(found)


def _ends(fabric: Fabric) -> tuple[U64, U64, NDArray[np.intp], Bool]:
    """Of all N live links: uint64[N] twice, numbers that name the port at one end and at the other;
    the index of the channel (one of a cable's two) or terminal; whether it is a terminal."""
    channels = np.flatnonzero(
        fabric.channel_up & (fabric.channel_reverse > np.arange(fabric.channels))
    )
    hosts, back = np.flatnonzero(fabric.is_host_port), fabric.channel_reverse[channels]
    guid = fabric.switch_guid
    switch = np.concatenate([fabric.channel_source[channels], fabric.terminal_switch[hosts]])
    port = np.concatenate([fabric.channel_port[channels], fabric.terminal_switch_port[hosts]])
    other = np.concatenate([guid[fabric.channel_source[back]], fabric.terminal_guid[hosts]])
    # The GUID of a terminal is that of its port.
    other_port = np.concatenate([fabric.channel_port[back], np.zeros(len(hosts), np.int32)])
    is_host = np.arange(len(port)) >= len(channels)
    ends = place_key(guid[switch], port), place_key(other, other_port)
    return *ends, np.concatenate([channels, hosts]), is_host


def _lost_name(fabric: Fabric, index: int, is_host: bool, dead: Bool) -> str:
    """The name of a link; empty where it was at a dead switch, which is reported instead."""
    if is_host:
        switch, port = int(fabric.terminal_switch[index]), int(fabric.terminal_switch_port[index])
        name = f'"{fabric.switch_name[switch]}"[{port}] -> host {fabric.terminal_host[index]}'
        return "" if dead[switch] else name
    ends = fabric.channel_source[index], fabric.channel_target[index]
    return "" if dead[list(ends)].any() else fabric.channel_name(index)
