"""Forwarding tables as `/32` routes of the switches' namespaces, and read back from them.

Entry (switch, terminal) → port becomes `ADDRESS/32 dev pPORT`. Only entries that differ are
written, each by one `replace`, so that packets under way always find a route.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.check.reachability import check_reachability
from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.plural import plural
from sar_lab.emulate.namespaces import EmulatedFabric

_LINK = 253
"""RT_SCOPE_LINK: the next hop is on the cable."""


class WrongEntry(NamedTuple):
    """What a switch does with packets to a terminal, and what its table says."""

    switch: int
    terminal: int
    found: int
    expected: int


def require_way(fabric: Fabric, routes: Routes, name: str) -> None:
    """Raises `InputError` where a host does not reach another: before anything is built."""
    routes.require_fit(fabric)
    found = check_reachability(fabric, routes, between_hosts=True)
    if found.unreachable_pairs:
        raise InputError(
            f"tables {name}: {found.first}; {plural(found.unreachable_pairs, 'pair')} of leaf "
            "switch and "
            "host are not reached",
            remedy="give tables that lead from every host to every host",
        )


def port_entries(fabric: Fabric, routes: Routes) -> U8:
    """uint8[T, S]: the port by which switch s forwards to terminal t, of LID offset 0; `NO_ROUTE`
    where there is no cable at it, and towards terminals whose link is down."""
    entries = routes.egress[0, : fabric.terminals].copy()
    cabled = np.zeros((fabric.switches, 256), np.bool_)
    live = fabric.channel_up
    cabled[fabric.channel_source[live], fabric.channel_port[live]] = True
    up = fabric.terminal_up
    cabled[fabric.terminal_switch[up], fabric.terminal_switch_port[up]] = True
    entries[~cabled[np.arange(fabric.switches), entries]] = NO_ROUTE
    entries[~up] = NO_ROUTE
    return entries


class EmulatedTables:
    """The tables of an emulated fabric: at first none."""

    def __init__(self, network: EmulatedFabric) -> None:
        self.network = network
        fabric = network.fabric
        self.entries: U8 = np.full((fabric.terminals, fabric.switches), NO_ROUTE, np.uint8)
        """uint8[T, S], as `port_entries`: what was written last."""

    def install(self, routes: Routes) -> int:
        """Writes what differs, also while ranks run; returns how many entries that were."""
        network = self.network
        new = port_entries(network.fabric, routes)
        changed = np.argwhere((new != self.entries).T)
        for switch, terminal in changed.tolist():
            write_entry(network, switch, terminal, int(new[terminal, switch]))
        self.entries = new
        return len(changed)

    def wrong_entries(self) -> list[WrongEntry]:
        """Reads all routes of all switches, and compares them with the tables."""
        fabric, network = self.network.fabric, self.network
        terminal = {network.address(t): t for t in range(fabric.terminals)}
        found = np.full_like(self.entries, NO_ROUTE)
        for switch, space in enumerate(network.switches):
            port = {index: int(name[1:]) for name, index in space.links.items()}
            for route in space.netlink.get_routes(family=2, table=254):
                t = terminal.get(route.get_attr("RTA_DST") or "")
                if t is not None and route["dst_len"] == 32:
                    found[t, switch] = port[route.get_attr("RTA_OIF")]
        return [
            WrongEntry(s, t, int(found[t, s]), int(self.entries[t, s]))
            for s, t in np.argwhere((found != self.entries).T).tolist()
        ]

    def require_equal(self) -> None:
        """Raises `CheckFailed` with the first entry that is not as the tables say."""
        if wrong := self.wrong_entries():
            first, fabric = wrong[0], self.network.fabric
            raise CheckFailed(
                f'{len(wrong)} routes are not as the tables say; first, switch "'
                f'{fabric.switch_name[first.switch]}" sends packets to '
                f"{fabric.destination_name(first.terminal)} by {_port(first.found)} instead of "
                f"{_port(first.expected)}"
            )


def write_entry(network: EmulatedFabric, switch: int, terminal: int, port: int) -> None:
    """One route, by a port with a cable, or none (`NO_ROUTE`, where there was one)."""
    space, dst = network.switches[switch], f"{network.address(terminal)}/32"
    if port == NO_ROUTE:
        space.netlink.route("del", dst=dst, scope=_LINK)
    else:
        space.netlink.route("replace", dst=dst, oif=space.links[f"p{port}"], scope=_LINK)


def _port(port: int) -> str:
    return "no port" if port == NO_ROUTE else f"port {port}"
