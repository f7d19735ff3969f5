"""Collects nodes and cables one by one, in any order, and freezes them into a `Fabric`.

All readers and generators use it. The invariants of `Fabric` (sorted channels, paired directions,
unique GUIDs and ports) are established here, on whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import Kind, hca_order
from sar_agent.fabric.model import I32, I64, U8, U64, Fabric
from sar_agent.fabric.notes import twin_note
from sar_agent.fabric.rates import lanes_of

_TOO_MANY_BITS = "a LID or a port's number has more than 31 bits"


class Terminal(NamedTuple):
    """A port of a channel adapter or router; `position` is that of its node in the source."""

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

    def add_named(self, ports: Sequence[tuple[Terminal, str]], leaves: Sequence[str]) -> list[str]:
        """Adds terminals, each with the name of its HCA: in the order of their hosts' first nodes
        and, within a host, of HCA names (numbers as numbers), port numbers and GUIDs, which is that
        of rails. Returns notes on machines with one description; `leaves` are names of switches.

        Two machines have one description after cloning a disk: several nodes have one host's and
        HCA's name. The least GUID keeps the name, the others are hosts of their own.
        """
        least: dict[tuple[str, str], Terminal] = {}
        for port, hca in ports:
            if hca and port.kind == Kind.COMPUTE:
                known = least.get((port.host, hca), port)
                least[port.host, hca] = min(port, known, key=lambda each: each.node_guid)
        apart: list[tuple[Terminal, str]] = []
        twins: dict[int, str] = {}
        for port, hca in ports:
            first = least.get((port.host, hca), port)
            if port.kind == Kind.COMPUTE and port.node_guid != first.node_guid:
                at = leaves[first.switch], leaves[port.switch]
                note = twin_note(port.description, (first.node_guid, port.node_guid), at)
                twins.setdefault(port.node_guid, note)
                port = port._replace(host=f"H-{port.node_guid:016x}")
            apart.append((port, hca))
        position: dict[str, int] = {}
        several: set[str] = set()  # hosts with several ports; only these compare HCA names
        for port, _ in apart:
            if port.host in position:
                several.add(port.host)
            position[port.host] = min(position.get(port.host, port.position), port.position)

        def key_of(named: tuple[Terminal, str]) -> tuple[Any, ...]:
            port, hca = named
            hcas = hca_order(hca) if port.host in several else ()
            return position[port.host], port.host, hcas, port.port_number, port.guid

        self.terminals += [port for port, _ in sorted(apart, key=key_of)]
        return [*twins.values()]

    def add_link(
        self, a: int, a_port: int, b: int, b_port: int, *, up: bool = True, rate: float = 100.0
    ) -> None:
        """One cable between switches `a` and `b`: two channels."""
        self._links.append((a, a_port, b, b_port, up, rate))

    def build(self) -> Fabric:
        """Freeze. Raises `InputError` on duplicate GUIDs, ports used twice, ports out of range."""
        name = self.name
        guids, names, numbers, lids, places = _columns(self._switches, 5)
        terminals: Any = Terminal._make(_columns(self.terminals, len(Terminal._fields)))
        *ends, up, rate = _columns(self._links, 6)
        a, a_port, b, b_port = map(_ints, ends)
        at, at_port = _ints(terminals.switch), _ints(terminals.switch_port)
        switch_guid, terminal_guid, ports = _guids(guids), _guids(terminals.guid), _ints(numbers)
        if not len(switch_guid):
            raise InputError("no switch in it", file=name, remedy="is this a fabric?")
        _no_twice(switch_guid, "switch GUID", name)
        _no_twice(terminal_guid, "terminal port GUID", name)
        used = np.concatenate([a, b, at]), np.concatenate([a_port, b_port, at_port])
        _require_ports(used[0], used[1], ports, names, name)

        source, port = np.concatenate([a, b]), np.concatenate([a_port, b_port])
        order = np.argsort(source * 256 + port)  # no two are equal
        where = np.empty(len(order), np.int64)
        where[order] = np.arange(len(order))
        other = np.concatenate([np.arange(len(a), 2 * len(a)), np.arange(len(a))])
        rails: dict[str, int] = {}
        rail = np.zeros(len(terminal_guid), np.int32)
        for index, host in enumerate(terminals.host):
            rail[index] = rails.get(host, 0)
            rails[host] = int(rail[index]) + 1
        # Nodes without a cable left gaps; only the order matters.
        positions = np.concatenate([_ints(places), _ints(terminals.position)])
        _, place = np.unique(positions, return_inverse=True)
        position = (place + 1).astype(np.int32)
        return Fabric(
            name=name,
            switch_guid=switch_guid,
            switch_name=names,
            switch_lid=_i32(lids),
            switch_ports=_i32(ports),
            terminal_guid=terminal_guid,
            terminal_node_guid=_guids(terminals.node_guid),
            terminal_port_number=_i32(terminals.port_number),
            terminal_description=terminals.description,
            terminal_host=terminals.host,
            terminal_rail=rail,
            terminal_kind=np.asarray(terminals.kind, np.uint8),
            terminal_lid=_i32(terminals.lid),
            terminal_switch=_i32(at),
            terminal_switch_port=_i32(at_port),
            terminal_up=np.asarray(terminals.up, np.bool_),
            terminal_rate=np.asarray(terminals.rate, np.float32),
            channel_offset=np.searchsorted(source[order], np.arange(len(switch_guid) + 1)).astype(
                np.int32
            ),
            channel_source=_i32(source[order]),
            channel_target=_i32(source[other][order]),
            channel_port=_i32(port[order]),
            channel_reverse=_i32(where[other][order]),
            channel_up=np.tile(np.asarray(up, np.bool_), 2)[order],
            channel_rate=np.tile(np.asarray(rate, np.float32), 2)[order],
            terminal_lanes=_lanes(terminals.rate),
            channel_lanes=np.tile(_lanes(rate), 2)[order],
            switch_position=position[: len(switch_guid)],
            terminal_position=position[len(switch_guid) :],
            lmc=self.lmc,
            notes=tuple(self.notes),
        )


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    return [*zip(*rows, strict=True)] if rows else [()] * width


def _lanes(rates: Sequence[float]) -> U8:
    return np.fromiter(map(lanes_of, rates), np.uint8, len(rates))


def first_repeated(values: NDArray[np.generic]) -> int:
    """The index of the first value that occurred before; -1 where all values differ."""
    order = np.argsort(values, kind="stable")
    again = order[1:][values[order[1:]] == values[order[:-1]]]
    return int(again.min()) if len(again) else -1


def _require_ports(switch: I64, port: I64, ports: I64, names: Sequence[str], file: str) -> None:
    """Raises `InputError` for the first cable end that is not a port, or whose port is in use."""
    most = np.minimum(254, ports[switch])
    bad = np.flatnonzero((port < 1) | (port > most))
    end = int(bad[0]) if len(bad) else len(switch)
    twice = first_repeated(switch[:end] * 256 + port[:end])
    if twice >= 0:
        name = names[switch[twice]]
        raise InputError(f'port {port[twice]} of switch "{name}" is cabled twice', file=file)
    if end < len(switch):
        raise InputError(
            f'port {port[end]} of switch "{names[switch[end]]}" is outside 1 … {most[end]}',
            file=file,
        )


def _no_twice(guids: U64, what: str, file: str) -> None:
    if (twice := first_repeated(guids)) >= 0:
        raise InputError(f"{what} 0x{int(guids[twice]):016x} occurs twice", file=file)


def _ints(values: ArrayLike) -> I64:
    try:
        return np.asarray(values, np.int64)
    except OverflowError as error:
        raise InputError(_TOO_MANY_BITS) from error


def _i32(values: ArrayLike) -> I32:
    whole = _ints(values)
    if len(whole) and not -(1 << 31) <= whole.min() <= whole.max() < 1 << 31:
        raise InputError(_TOO_MANY_BITS)
    return whole.astype(np.int32)


def _guids(values: ArrayLike) -> U64:
    try:
        return np.asarray(values, np.uint64)
    except OverflowError as error:
        raise InputError("a GUID has more than 64 bits") from error
