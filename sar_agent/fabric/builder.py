"""Collects nodes and cables one by one, in any order, and freezes them into a `Fabric`.

Readers of text and generators use it; `columns.py`, which the reader of OpenSM's file uses, too,
establishes the invariants of `Fabric`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sar_agent.fabric.columns import Links, Switches, Terminals, freeze
from sar_agent.fabric.model import Fabric, Kind


@dataclass
class _Switch:
    guid: int
    name: str
    ports: int
    lid: int
    position: int


@dataclass
class _Terminal:
    guid: int
    node_guid: int
    port_number: int
    description: str
    host: str
    kind: Kind
    lid: int
    switch: int
    switch_port: int
    up: bool
    rate: float
    position: int


class FabricBuilder:
    """`add_switch`, `add_terminal`, `add_link`, then `build`; every add returns an index."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lmc = 0
        self.notes: list[str] = []
        self._switches: list[_Switch] = []
        self._terminals: list[_Terminal] = []
        self._links: list[tuple[int, int, int, int, bool, float]] = []
        self._position = 0

    def next_position(self) -> int:
        """The position of the next node in the source; call it once per node."""
        self._position += 1
        return self._position

    def add_switch(
        self, guid: int, name: str, ports: int, *, lid: int = 0, position: int | None = None
    ) -> int:
        node_position = self.next_position() if position is None else position
        self._switches.append(_Switch(guid, name, ports, lid, node_position))
        return len(self._switches) - 1

    def add_terminal(
        self,
        guid: int,
        description: str,
        host: str,
        switch: int,
        switch_port: int,
        *,
        node_guid: int | None = None,
        port_number: int = 1,
        kind: Kind = Kind.COMPUTE,
        lid: int = 0,
        up: bool = True,
        rate: float = 100.0,
        position: int | None = None,
    ) -> int:
        node = guid if node_guid is None else node_guid
        node_position = self.next_position() if position is None else position
        self._terminals.append(
            _Terminal(
                guid, node, port_number, description, host, kind, lid, switch, switch_port, up,
                rate, node_position,
            )
        )  # fmt: skip
        return len(self._terminals) - 1

    def add_link(
        self, a: int, a_port: int, b: int, b_port: int, *, up: bool = True, rate: float = 100.0
    ) -> None:
        """One cable between switches `a` and `b`: two channels."""
        self._links.append((a, a_port, b, b_port, up, rate))

    def build(self) -> Fabric:
        """Freeze. Raises `InputError` on duplicate GUIDs, ports used twice, ports out of range."""
        s, t = self._switches, self._terminals
        a, a_port, b, b_port, up, rate = zip(*self._links, strict=True) if self._links else [()] * 6
        return freeze(
            self.name,
            Switches(
                guid=[x.guid for x in s], name=tuple(x.name for x in s),
                ports=[x.ports for x in s], lid=[x.lid for x in s],
                position=[x.position for x in s],
            ),
            Terminals(
                guid=[x.guid for x in t], node_guid=[x.node_guid for x in t],
                port_number=[x.port_number for x in t],
                description=tuple(x.description for x in t), host=tuple(x.host for x in t),
                kind=[x.kind for x in t], lid=[x.lid for x in t], switch=[x.switch for x in t],
                switch_port=[x.switch_port for x in t], up=[x.up for x in t],
                rate=[x.rate for x in t], position=[x.position for x in t],
            ),
            Links(a, a_port, b, b_port, up, rate),
            self.lmc,
            self.notes,
        )  # fmt: skip
