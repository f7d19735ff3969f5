"""Links and hosts that this process has seen up and that are not up any more.

A fabric as OpenSM discovered it does not list a dead cable, so the fabrics of two passes are
compared. What is lost is forgotten once its port is up again, with whatever cable.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from sar_agent.counters.readings import place_key
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U64, Bool
from sar_agent.live_page.snapshot import Trouble

MOST_LOST = 1000
"""Lost links that are remembered."""
MOST_NAMED = 3


class LostLinks:
    """Compares each fabric with the one before."""

    def __init__(self) -> None:
        self._last: Fabric | None = None
        self._switches: dict[int, tuple[str, float]] = {}
        """GUID of a switch that is gone: its name, and since when."""
        self._links: dict[int, tuple[str, float]] = {}
        """The place of a port that is down: the name of its link, and since when."""

    def see(self, fabric: Fabric) -> None:
        """The fabric of a pass; where it is that of the pass before, nothing is done."""
        last = self._last
        if last is fabric or (last is not None and last.digest == fabric.digest):
            return
        self._last = fabric
        if last is None:
            return
        now, (places, _, _) = time.time(), _places(fabric)
        alive = fabric.switch_guid[fabric.switch_up]
        dead = last.switch_up & ~np.isin(last.switch_guid, alive)
        for s in np.flatnonzero(dead).tolist():
            self._switches[int(last.switch_guid[s])] = last.switch_name[s], now
        before, index, is_host = _places(last)
        for i in np.flatnonzero(~np.isin(before, places)).tolist():
            name = _lost_name(last, int(index[i]), bool(is_host[i]), dead)
            if name and len(self._links) < MOST_LOST:
                self._links[int(before[i])] = name, now
        up = set(np.intersect1d(np.array([*self._links], np.uint64), places).tolist())
        self._links = {place: what for place, what in self._links.items() if place not in up}
        back = set(alive.tolist())
        self._switches = {g: what for g, what in self._switches.items() if g not in back}

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


def _places(fabric: Fabric) -> tuple[U64, NDArray[np.intp], Bool]:
    """Of all live links: uint64[N], a number that names the switch's GUID and its port; the index
    of the channel (the lower one of a cable's two) or terminal; whether it is a terminal."""
    channels = np.flatnonzero(
        fabric.channel_up & (fabric.channel_reverse > np.arange(fabric.channels))
    )
    hosts = np.flatnonzero(fabric.is_host_port)
    switch = np.concatenate([fabric.channel_source[channels], fabric.terminal_switch[hosts]])
    port = np.concatenate([fabric.channel_port[channels], fabric.terminal_switch_port[hosts]])
    place = place_key(fabric.switch_guid[switch], port)
    is_host = np.arange(len(place)) >= len(channels)
    return place, np.concatenate([channels, hosts]), is_host


def _lost_name(fabric: Fabric, index: int, is_host: bool, dead: Bool) -> str:
    """The name of a link; empty where it was at a dead switch, which is reported instead."""
    if is_host:
        switch, port = int(fabric.terminal_switch[index]), int(fabric.terminal_switch_port[index])
        name = f'"{fabric.switch_name[switch]}"[{port}] -> host {fabric.terminal_host[index]}'
        return "" if dead[switch] else name
    ends = fabric.channel_source[index], fabric.channel_target[index]
    return "" if dead[list(ends)].any() else fabric.channel_name(index)
