"""Builds a `Fabric` from arrays of switches, terminals and links: the last step of all readers.

The invariants of `Fabric` (sorted channels, paired directions, unique GUIDs and ports) are
established here for all sources, on whole arrays: loops would take a tenth of a second for 11,664
hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, I64, U64, Fabric

_TOO_MANY_BITS = "a LID or a port's number has more than 31 bits"


@dataclass(frozen=True)
class Switches:
    """S switches; arrays have length S. `position` is the node's position in the source."""

    guid: ArrayLike
    name: tuple[str, ...]
    ports: ArrayLike
    lid: ArrayLike
    position: ArrayLike


@dataclass(frozen=True)
class Terminals:
    """T terminals; ports of one host are in the order of their rails."""

    guid: ArrayLike
    node_guid: ArrayLike
    port_number: ArrayLike
    description: tuple[str, ...]
    host: tuple[str, ...]
    kind: ArrayLike
    lid: ArrayLike
    switch: ArrayLike
    switch_port: ArrayLike
    up: ArrayLike
    rate: ArrayLike
    position: ArrayLike


@dataclass(frozen=True)
class Links:
    """Cables between switches `a` and `b`, each listed once; each becomes two channels."""

    a: ArrayLike
    a_port: ArrayLike
    b: ArrayLike
    b_port: ArrayLike
    up: ArrayLike
    rate: ArrayLike


def freeze(
    name: str,
    switches: Switches,
    terminals: Terminals,
    links: Links,
    lmc: int = 0,
    notes: Sequence[str] = (),
) -> Fabric:
    """The fabric; `name` is the source, for messages. Raises `InputError` for duplicate GUIDs,
    ports used twice, ports out of range, and a fabric without a switch."""
    a, a_port, b, b_port = (_ints(x) for x in (links.a, links.a_port, links.b, links.b_port))
    at, at_port = _ints(terminals.switch), _ints(terminals.switch_port)
    switch_guid, terminal_guid = _guids(switches.guid), _guids(terminals.guid)
    if not len(switch_guid):
        raise InputError("no switch in it", file=name, remedy="is this a fabric?")
    _no_twice(switch_guid, "switch GUID", name)
    _no_twice(terminal_guid, "terminal port GUID", name)
    used = np.concatenate([a, b, at]), np.concatenate([a_port, b_port, at_port])
    _require_ports(used[0], used[1], _ints(switches.ports), switches.name, name)

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
    positions = np.concatenate([_ints(switches.position), _ints(terminals.position)])
    _, places = np.unique(positions, return_inverse=True)
    position = (places + 1).astype(np.int32)
    return Fabric(
        name=name,
        switch_guid=switch_guid,
        switch_name=switches.name,
        switch_lid=_i32(switches.lid),
        switch_ports=_i32(switches.ports),
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
        channel_up=np.tile(np.asarray(links.up, np.bool_), 2)[order],
        channel_rate=np.tile(np.asarray(links.rate, np.float32), 2)[order],
        switch_position=position[: len(switch_guid)],
        terminal_position=position[len(switch_guid) :],
        lmc=lmc,
        notes=tuple(notes),
    )


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
