"""Reader of the fabric file that OpenSM's plugin writes: `opensm_bridge/FABRIC.md`.

The `Fabric` is the one that ibnetdiscover's output gives. The order of nodes does not depend on the
port that asked: switches come breadth first from the one with the lowest GUID, HCAs by the port of
the switch to which they are cabled.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.columns import Links, Switches, Terminals, first_repeated, freeze
from sar_agent.fabric.hostnames import HostMapper, name_port, port_order, told_apart
from sar_agent.fabric.model import I64, Bool, Fabric
from sar_agent.fabric.notes import twin_note
from sar_agent.fabric.rates import LANE_RATE, UNREAD

AGAIN = "ask the plugin again"
MOST_BYTES = 1 << 28
"""The largest file that is read; a subnet with all 49,151 LIDs has 20 MB."""

_HEADER = struct.Struct("<8sIIQIIIIQQII")
_CA, _SWITCH, _ROUTER = 1, 2, 3
_LETTER = {_CA: "H", _SWITCH: "S", _ROUTER: "R"}
_UNHEALTHY = 0x80
_WIDTHS = (0, 1, 2, 4, 8, 12)
_SPEEDS = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR")
_LANE = np.array([np.nan, *(LANE_RATE[speed] for speed in _SPEEDS)])
_PRINTABLE = bytes(c if 32 <= c < 127 else 32 for c in range(256))
"""As ibnetdiscover prints descriptions: a blank for each byte that is not printable ASCII."""

Floats = NDArray[np.float64]


class _Sizes(NamedTuple):
    nodes: int
    ports: int
    links: int
    names: int

    @property
    def file(self) -> int:
        return _HEADER.size + 11 * self.nodes + 19 * self.ports + 8 * self.links + self.names


@dataclass(frozen=True)
class _FileArrays:
    """The file's arrays, checked; all but GUIDs, names and rates as int64."""

    node_guid: NDArray[np.uint64]
    node_type: I64
    node_ports: I64
    name: tuple[str, ...]
    port_guid: NDArray[np.uint64]
    port_node: I64
    port_number: I64
    port_lid: I64
    port_lmc: I64
    port_up: Bool
    port_rate: Floats  # Gbit/s, NaN where not known
    link: I64  # [2, L], ports


class OpensmFabric(NamedTuple):
    """The fabric of a file, and the digest that the plugin gave it (16 hex digits)."""

    fabric: Fabric
    digest: str


def read_opensm_fabric(path: str | Path, mapper: HostMapper | None = None) -> OpensmFabric:
    """The fabric of a file. Raises `InputError` where it is missing, unreadable or damaged."""
    image = read_plugin_file(Path(path), MOST_BYTES, "a fabric")
    return decode_opensm_fabric(image, mapper, name=str(path))


def read_plugin_file(path: Path, most: int, what: str) -> bytes:
    """A file that the plugin wrote. Raises `InputError` where it is missing or unreadable, or has
    more than `most` bytes, which is too large for `what`."""
    try:
        if path.stat().st_size > most:
            raise InputError(f"is too large for {what}", file=path, remedy=AGAIN)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({why})", file=path, remedy=AGAIN) from error


def decode_opensm_fabric(
    image: bytes, mapper: HostMapper | None = None, *, name: str = "OpenSM's fabric"
) -> OpensmFabric:
    """The fabric of a file's bytes; `name` is for messages. Raises `InputError`."""
    fabric = _fabric(_file_arrays(image, name), mapper or HostMapper(), name)
    return OpensmFabric(fabric, image[55:47:-1].hex())


def _file_arrays(image: bytes, name: str) -> _FileArrays:
    """The file's arrays. Raises `InputError` where a rule of FABRIC.md is broken."""
    sizes = _sizes(image, name)

    def require(holds: object, what: str) -> None:
        if not holds:
            raise InputError(f"damaged: {what}", file=name, remedy=AGAIN)

    arrays = _arrays(image, sizes)
    node_guid, port_guid = next(arrays), next(arrays)
    port_node, link_from, link_to, port_lid, node_type, node_ports, name_length = (
        next(arrays).astype(np.int64) for _ in range(7)
    )
    number, lmc, state, width, speed = (next(arrays).astype(np.int64) for _ in range(5))
    switch = node_type == _SWITCH
    require((node_guid[1:] > node_guid[:-1]).all(), "node GUIDs are not ascending")
    require(((node_type >= _CA) & (node_type <= _ROUTER)).all(), "an unknown type of node")
    require(name_length.sum() == sizes.names, "the names are not as long as they should be")
    require((port_node < sizes.nodes).all(), "a port of no node")
    place = port_node * 256 + number
    require((place[1:] > place[:-1]).all(), "ports are not ascending")
    low = np.where(switch, 0, 1)
    require(
        ((number >= low[port_node]) & (number <= node_ports[port_node])).all(),
        "a port number that its node does not have",
    )
    require((lmc < 8).all(), "an LMC above 7")
    low_state = state & ~_UNHEALTHY
    require(((low_state >= 0) & (low_state <= 4)).all(), "an unknown port state")
    require(np.isin(width, _WIDTHS).all() and (speed < len(_LANE)).all(), "an unknown rate")
    ends = np.concatenate([link_from, link_to])
    require((ends < sizes.ports).all() and (link_from < link_to).all(), "a link of no port")
    require((number[ends] > 0).all(), "a link of a switch's own port")
    require(
        (link_from[1:] > link_from[:-1]).all() and first_repeated(ends) < 0, "a port with two links"
    )
    names = image[len(image) - sizes.names :].translate(_PRINTABLE).decode("ascii")
    stop = np.cumsum(name_length).tolist()
    rate = np.where(width == 0, np.nan, width * _LANE[speed])
    return _FileArrays(
        node_guid, node_type, node_ports,
        tuple(names[a:b] for a, b in zip([0, *stop], stop, strict=False)),
        port_guid, port_node, number, np.where(port_lid <= MAX_LID, port_lid, 0), lmc,
        (state & _UNHEALTHY) == 0, rate, np.stack([link_from, link_to]),
    )  # fmt: skip


def _sizes(image: bytes, name: str) -> _Sizes:
    if len(image) < _HEADER.size or not image.startswith(b"SARFABRI"):
        raise InputError("is not a fabric file of OpenSM's plugin", file=name, remedy=AGAIN)
    _, version, header, size, *counts, _made_at, _digest, payload_crc, header_crc = _HEADER.unpack(
        image[: _HEADER.size]
    )
    if zlib.crc32(image[: _HEADER.size - 4]) != header_crc:
        raise InputError("damaged: bad header checksum", file=name, remedy=AGAIN)
    if version != 1 or header != _HEADER.size:
        raise InputError(
            f"is of version {version}, and this agent reads version 1",
            file=name, remedy="install plugin and agent from one release",
        )  # fmt: skip
    sizes = _Sizes(*counts)
    if not size == len(image) == sizes.file:
        raise InputError(
            f"has {len(image)} bytes and not {sizes.file}: cut short", file=name, remedy=AGAIN
        )
    if zlib.crc32(image[_HEADER.size :]) != payload_crc:
        raise InputError("damaged: bad payload checksum", file=name, remedy=AGAIN)
    return sizes


def _arrays(image: bytes, sizes: _Sizes) -> Iterator[NDArray[np.uint64]]:
    """The arrays in the order of the file, without the names."""
    nodes, ports, links, _ = sizes
    at = _HEADER.size
    for count, dtype in (
        (nodes, "<u8"), (ports, "<u8"), (ports, "<u4"), (links, "<u4"), (links, "<u4"),
        (ports, "<u2"), *[(nodes, "u1")] * 3, *[(ports, "u1")] * 5,
    ):  # fmt: skip
        array = np.frombuffer(image, dtype, count, at)
        at += array.nbytes
        yield array


def _fabric(p: _FileArrays, mapper: HostMapper, name: str) -> Fabric:
    """The fabric of the file's arrays. Of L links, a `trunk` joins two switches; an `edge` joins a
    switch (`near`) and a channel adapter or router (`far`); other links are left out and noted."""
    a, b = p.link
    at_switch = [p.node_type[p.port_node[end]] == _SWITCH for end in (a, b)]
    between = at_switch[0] & at_switch[1]
    itself = p.port_node[a] == p.port_node[b]
    if not (p.node_type == _CA).any():
        raise InputError("no host in it", file=name, remedy=AGAIN)
    up = p.port_up[a] & p.port_up[b]
    rate = np.fmin(p.port_rate[a], p.port_rate[b])
    unread = int(np.isnan(rate).sum())
    fastest = max(LANE_RATE["SDR"], float(np.nanmax(p.port_rate, initial=0.0)))
    rate = np.where(np.isnan(rate), fastest, rate)
    trunk, edge = between & ~itself, at_switch[0] ^ at_switch[1]
    near, far = np.where(at_switch[0], [a, b], [b, a])[
        :, edge
    ]  # of edges: at the switch, at the HCA
    order = _switch_order(p, p.link[:, trunk])
    index = np.full(len(p.node_guid), -1)
    index[order] = np.arange(len(order))
    switch_port = p.port_number[near]
    position = _positions(p, index[p.port_node[near]] * 256 + switch_port, p.port_node[far])

    nodes, guids, numbers = (
        x.tolist() for x in (p.port_node[far], p.node_guid, p.port_number[far])
    )
    letters = [_LETTER[kind] for kind in p.node_type.tolist()]
    named, pairs = told_apart(
        [
            name_port(mapper, letters[n], guids[n], p.name[n], number)
            for n, number in zip(nodes, numbers, strict=True)
        ],
        [guids[n] for n in nodes],
    )
    ports = port_order(named, position.tolist(), numbers, p.port_guid[far].tolist())
    twins = [
        twin_note(
            p.name[nodes[one]],
            (guids[nodes[one]], guids[nodes[other]]),
            (p.name[p.port_node[near[one]]], p.name[p.port_node[near[other]]]),
        )
        for one, other in pairs
    ]
    pick = np.array(ports, np.int64)
    far, near, position = far[pick], near[pick], position[pick]
    own = np.flatnonzero((p.port_number == 0) & (p.node_type[p.port_node] == _SWITCH))
    switch_lid = np.zeros(len(p.node_guid), np.int64)
    switch_lid[p.port_node[own]] = p.port_lid[own]
    ends = p.link.ravel()
    host_lmc = p.port_lmc[ends[p.node_type[p.port_node[ends]] == _CA]]
    return freeze(
        name,
        Switches(
            p.node_guid[order],
            tuple(p.name[n] or f"S-{guids[n]:016x}" for n in order.tolist()),
            p.node_ports[order], switch_lid[order], np.arange(1, len(order) + 1),
        ),
        Terminals(
            p.port_guid[far], p.node_guid[p.port_node[far]], p.port_number[far],
            tuple(p.name[nodes[t]] for t in ports), tuple(named[t].host for t in ports),
            [named[t].kind for t in ports], p.port_lid[far],
            index[p.port_node[near]], p.port_number[near], up[edge][pick], rate[edge][pick],
            position + len(order),
        ),
        Links(
            index[p.port_node[a[trunk]]], p.port_number[a[trunk]], index[p.port_node[b[trunk]]],
            p.port_number[b[trunk]], up[trunk], rate[trunk],
        ),
        int(host_lmc.max(initial=0)),
        [
            *_notes(unread, int((itself & between).sum()), int((~between & ~edge).sum())),
            *twins,
        ],
    )  # fmt: skip


def _positions(p: _FileArrays, place: I64, node: I64) -> I64:
    """For each terminal the position of its node among HCAs, in the order of each node's first
    cable; cables are at `place` (switch and port)."""
    first = np.full(len(p.node_guid), np.iinfo(np.int64).max)
    np.minimum.at(first, node, place)
    _, position = np.unique(first[node], return_inverse=True)
    return position.astype(np.int64) + 1


def _switch_order(p: _FileArrays, trunks: I64) -> I64:
    """All switches, breadth first over cables from the one with the lowest GUID, by port number;
    then, in the same way, those that cannot be reached from there."""
    near: dict[int, list[int]] = {}
    for a, b in sorted(zip(*np.concatenate([trunks, trunks[::-1]], axis=1).tolist(), strict=True)):
        near.setdefault(int(p.port_node[a]), []).append(int(p.port_node[b]))
    order: dict[int, None] = {}
    for root in np.flatnonzero(p.node_type == _SWITCH).tolist():
        waiting = deque([root])
        while waiting:
            if (switch := waiting.popleft()) not in order:
                order[switch] = None
                waiting += near.get(switch, ())
    return np.array([*order], np.int64)


def _notes(unread: int, itself: int, bare: int) -> Iterator[str]:
    if unread:
        yield f"{_cables(unread)} {UNREAD}: taken to be as fast as the fastest"
    if itself:
        yield f"{_cables(itself)} both ends at one switch: left out"
    if bare:
        yield f"{_cables(bare)} no switch at either end: left out"


def _cables(count: int) -> str:
    return "1 cable has" if count == 1 else f"{count} cables have"
