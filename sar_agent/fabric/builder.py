"""Collects nodes and cables one by one, in any order, and freezes them into a `Fabric`.

Readers and generators share it, so that the invariants of `Fabric` (sorted channels, paired
directions, unique GUIDs) are established in one place and its complaints sound alike everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import U64, Fabric, Kind


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
        """The place of the next node in the source; call once a node."""
        self._position += 1
        return self._position

    def add_switch(
        self, guid: int, name: str, ports: int, *, lid: int = 0, position: int | None = None
    ) -> int:
        place = self.next_position() if position is None else position
        self._switches.append(_Switch(guid, name, ports, lid, place))
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
        place = self.next_position() if position is None else position
        self._terminals.append(
            _Terminal(
                guid, node, port_number, description, host, kind, lid, switch, switch_port, up,
                rate, place,
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
        self._require_unique()
        switches, terminals = self._switches, self._terminals
        directed = [(a, ap, b, bp, up, r) for a, ap, b, bp, up, r in self._links]
        directed += [(b, bp, a, ap, up, r) for a, ap, b, bp, up, r in self._links]
        directed.sort(key=lambda row: row[:2])
        where = {row[:2]: channel for channel, row in enumerate(directed)}
        source = np.array([row[0] for row in directed], np.int32)
        offsets = np.searchsorted(source, np.arange(len(switches) + 1)).astype(np.int32)
        rails: dict[str, int] = {}
        rail = np.zeros(len(terminals), np.int32)
        for index, terminal in enumerate(terminals):
            rail[index] = rails.get(terminal.host, 0)
            rails[terminal.host] = int(rail[index]) + 1
        # Nodes that turned out to have no cable left gaps; only the order matters.
        positions = [s.position for s in switches] + [t.position for t in terminals]
        _, places = np.unique(np.array(positions), return_inverse=True)
        return Fabric(
            name=self.name,
            switch_guid=_guids(s.guid for s in switches),
            switch_name=tuple(s.name for s in switches),
            switch_lid=_ints(s.lid for s in switches),
            switch_ports=_ints(s.ports for s in switches),
            terminal_guid=_guids(t.guid for t in terminals),
            terminal_node_guid=_guids(t.node_guid for t in terminals),
            terminal_port_number=_ints(t.port_number for t in terminals),
            terminal_description=tuple(t.description for t in terminals),
            terminal_host=tuple(t.host for t in terminals),
            terminal_rail=rail,
            terminal_kind=np.array([t.kind for t in terminals], np.uint8),
            terminal_lid=_ints(t.lid for t in terminals),
            terminal_switch=_ints(t.switch for t in terminals),
            terminal_switch_port=_ints(t.switch_port for t in terminals),
            terminal_up=np.array([t.up for t in terminals], np.bool_),
            terminal_rate=np.array([t.rate for t in terminals], np.float32),
            channel_offset=offsets,
            channel_source=source,
            channel_target=_ints(row[2] for row in directed),
            channel_port=_ints(row[1] for row in directed),
            channel_reverse=_ints(where[(row[2], row[3])] for row in directed),
            channel_up=np.array([row[4] for row in directed], np.bool_),
            channel_rate=np.array([row[5] for row in directed], np.float32),
            switch_position=(places[: len(switches)] + 1).astype(np.int32),
            terminal_position=(places[len(switches) :] + 1).astype(np.int32),
            lmc=self.lmc,
            notes=tuple(self.notes),
        )

    def _require_unique(self) -> None:
        if not self._switches:
            raise InputError("no switch in it", file=self.name, remedy="is this a fabric?")
        _no_twice([s.guid for s in self._switches], "switch GUID", self.name)
        _no_twice([t.guid for t in self._terminals], "terminal port GUID", self.name)
        used = [(a, ap) for a, ap, _, _, _, _ in self._links]
        used += [(b, bp) for _, _, b, bp, _, _ in self._links]
        used += [(t.switch, t.switch_port) for t in self._terminals]
        seen: set[tuple[int, int]] = set()
        for switch, port in used:
            name = self._switches[switch].name
            if not 1 <= port <= min(254, self._switches[switch].ports):
                raise InputError(
                    f'port {port} of switch "{name}" is outside 1 … '
                    f"{min(254, self._switches[switch].ports)}",
                    file=self.name,
                )
            if (switch, port) in seen:
                raise InputError(f'port {port} of switch "{name}" is cabled twice', file=self.name)
            seen.add((switch, port))


def _guids(values: Iterable[int]) -> U64:
    try:
        return np.array(list(values), np.uint64)
    except OverflowError as error:
        raise InputError("a GUID has more than 64 bits") from error


def _ints(values: object) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    try:
        return np.fromiter(values, np.int32)  # type: ignore[call-overload,no-any-return]
    except OverflowError as error:
        raise InputError("a LID or a port's number has more than 31 bits") from error


def _no_twice(guids: Sequence[int], what: str, file: str) -> None:
    seen: set[int] = set()
    for guid in guids:
        if guid in seen:
            raise InputError(f"{what} 0x{guid:016x} occurs twice", file=file)
        seen.add(guid)
