"""Collects nodes and cables one by one, in any order, and freezes them into a `Fabric`.

Readers of text and generators use it; `columns.py`, which the reader of OpenSM's file uses, too,
establishes the invariants of `Fabric`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sar_agent.fabric.columns import Links, Switches, Terminals, freeze
from sar_agent.fabric.model import Fabric, Kind


class Terminal(NamedTuple):
    """A row of `Terminals`."""

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
        self.terminals: list[Terminal] = []
        self._switches: list[tuple[int, str, int, int, int]] = []
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
        self._switches.append((guid, name, ports, lid, node_position))
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
        self.terminals.append(
            Terminal(
                guid, node, port_number, description, host, kind, lid, switch, switch_port, up,
                rate, node_position,
            )
        )  # fmt: skip
        return len(self.terminals) - 1

    def add_link(
        self, a: int, a_port: int, b: int, b_port: int, *, up: bool = True, rate: float = 100.0
    ) -> None:
        """One cable between switches `a` and `b`: two channels."""
        self._links.append((a, a_port, b, b_port, up, rate))

    def build(self) -> Fabric:
        """Freeze. Raises `InputError` on duplicate GUIDs, ports used twice, ports out of range."""
        return freeze(
            self.name,
            Switches(*_columns(self._switches, 5)),
            Terminals(*_columns(self.terminals, len(Terminal._fields))),
            Links(*_columns(self._links, 6)),
            self.lmc,
            self.notes,
        )


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    return [*zip(*rows, strict=True)] if rows else [()] * width
