"""Reader of the fabric file that OpenSM's plugin writes: `opensm_bridge/FABRIC.md`.

The `Fabric` is the one that ibnetdiscover's output gives. The order of nodes does not depend on the
port that asked: switches come breadth first from the one with the lowest GUID, HCAs by the port of
the switch to which they are cabled.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder, Terminal, first_repeated
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.hostnames import HostMapper, name_port
from sar_agent.fabric.model import I64, Bool, Fabric
from sar_agent.fabric.rates import LANE_RATE, UNREAD, LinkRate
from sar_agent.util.plural import plural
from sar_agent.util.text_files import disk_errors

AGAIN = "ask the plugin again"
MOST_BYTES = 1 << 28
"""The largest file that is read; a subnet with all 49,151 LIDs has 20 MB."""

HEADER = struct.Struct("<8sIIQIIIIQQII")
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
        return HEADER.size + 11 * self.nodes + 19 * self.ports + 8 * self.links + self.names


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
    port_lanes: I64  # 0 where not known
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
    with disk_errors("cannot be read", path, AGAIN):
        if path.stat().st_size > most:
            raise InputError(f"is too large for {what}", file=path, remedy=AGAIN)
        return path.read_bytes()


def decode_opensm_fabric(
    image: bytes, mapper: HostMapper | None = None, *, name: str = "OpenSM's fabric"
) -> OpensmFabric:
    """The fabric of a file's bytes; `name` is for messages. Raises `InputError`."""
    mapper = mapper or HostMapper()
    fabric = replace(_fabric(_file_arrays(image, name), mapper, name), traffic=mapper.traffic)
    return OpensmFabric(fabric, image[55:47:-1].hex())


def _file_arrays(image: bytes, name: str) -> _FileArrays:
    """The file's arrays. Raises `InputError` where a rule of FABRIC.md is broken."""
    sizes, require = _sizes(image, name), partial(require_sound, name)
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
        (state & _UNHEALTHY) == 0, rate, width, np.stack([link_from, link_to]),
    )  # fmt: skip


def require_sound(name: str, holds: object, what: str) -> None:
    """Raises `InputError` for the file `name` where a rule of its format does not hold."""
    if not holds:
        raise InputError(f"damaged: {what}", file=name, remedy=AGAIN)


def _sizes(image: bytes, name: str) -> _Sizes:
    kind = "a fabric file of OpenSM's plugin"
    return _Sizes(*sealed_counts(image, b"SARFABRI", kind, lambda c: _Sizes(*c).file, name))


def sealed_counts(
    image: bytes, magic: bytes, kind: str, size_of: Callable[[tuple[int, ...]], int], name: str
) -> tuple[int, ...]:
    """The four counts in the header of a file that the plugin sealed (`sealed_file.c`); `size_of`
    them is the file's size. Raises `InputError` where header or checksums are wrong."""
    if len(image) < HEADER.size or not image.startswith(magic):
        raise InputError(f"is not {kind}", file=name, remedy=AGAIN)
    _, version, header, size, *counts, _, _, payload_crc, header_crc = HEADER.unpack_from(image)
    if zlib.crc32(image[: HEADER.size - 4]) != header_crc:
        raise InputError("damaged: bad header checksum", file=name, remedy=AGAIN)
    if version != 1 or header != HEADER.size:
        raise InputError(
            f"is of version {version}, and this agent reads version 1",
            file=name, remedy="install plugin and agent from one release",
        )  # fmt: skip
    if not size == len(image) == size_of(tuple(counts)):
        whole = size_of(tuple(counts))
        raise InputError(
            f"has {len(image)} bytes and not {whole}: cut short", file=name, remedy=AGAIN
        )
    if zlib.crc32(image[HEADER.size :]) != payload_crc:
        raise InputError("damaged: bad payload checksum", file=name, remedy=AGAIN)
    return tuple(counts)


def _arrays(image: bytes, sizes: _Sizes) -> Iterator[NDArray[np.uint64]]:
    """The arrays in the order of the file, without the names."""
    nodes, ports, links, _ = sizes
    at = HEADER.size
    for count, dtype in (
        (nodes, "<u8"), (ports, "<u8"), (ports, "<u4"), (links, "<u4"), (links, "<u4"),
        (ports, "<u2"), *[(nodes, "u1")] * 3, *[(ports, "u1")] * 5,
    ):  # fmt: skip
        array = np.frombuffer(image, dtype, count, at)
        at += array.nbytes
        yield array


def _fabric(p: _FileArrays, mapper: HostMapper, name: str) -> Fabric:
    """The fabric of the file's arrays. A `trunk` joins two switches; an `edge` joins a switch
    (`near`) and a channel adapter or router (`far`); other links are left out and noted."""
    if not (p.node_type == _CA).any():
        raise InputError("no host in it", file=name, remedy=AGAIN)
    up = np.logical_and(*p.port_up[p.link])
    rate = np.fmin(*p.port_rate[p.link])
    unread = int(np.isnan(rate).sum())
    fastest = max(LANE_RATE["SDR"], float(np.nanmax(p.port_rate, initial=0.0)))
    first = p.port_rate[p.link[0]] == rate
    lanes = np.where(np.isnan(rate), 0, np.where(first, *p.port_lanes[p.link])).tolist()
    rates = map(LinkRate, np.where(np.isnan(rate), fastest, rate).tolist(), lanes)
    states = zip(up.tolist(), rates, strict=True)
    node, number, lid = p.port_node.tolist(), p.port_number.tolist(), p.port_lid.tolist()
    guid, port_guid = p.node_guid.tolist(), p.port_guid.tolist()
    letter = [_LETTER[kind] for kind in p.node_type.tolist()]
    trunks, edges, itself, bare = [], [], 0, 0
    for (a, b), state in zip(p.link.T.tolist(), states, strict=True):
        switches = (letter[node[a]] == "S") + (letter[node[b]] == "S")
        if switches == 1:
            edges.append((*((a, b) if letter[node[a]] == "S" else (b, a)), *state))
        elif switches == 2 and node[a] != node[b]:
            trunks.append((a, b, *state))
        else:
            itself, bare = itself + (switches == 2), bare + (switches == 0)
    builder = FabricBuilder(name)
    own = {n: lid[end] for end, n in enumerate(node) if not number[end] and letter[n] == "S"}
    order = _switch_order(p, [(a, b) for a, b, *_ in trunks])
    index = {
        n: builder.add_switch(
            guid[n], p.name[n] or f"S-{guid[n]:016x}", int(p.node_ports[n]), lid=own.get(n, 0)
        )
        for n in order
    }
    for a, b, live, gbits in trunks:
        ends = index[node[a]], number[a], index[node[b]], number[b]
        builder.add_link(*ends, up=live, rate=gbits)
    position: dict[int, int] = {}  # of HCAs, by their first cables
    for _, _, n in sorted((index[node[near]], number[near], node[far]) for near, far, *_ in edges):
        if n not in position:
            position[n] = builder.next_position()
    adapters = ((guid[n], p.name[n]) for n in range(len(guid)) if letter[n] == "H")
    mapper, names_notes = mapper.among(adapters)
    ports = []
    for near, far, live, gbits in edges:
        n = node[far]
        host, hca, kind = name_port(mapper, letter[n], guid[n], p.name[n], number[far])
        terminal = Terminal(
            port_guid[far], guid[n], number[far], p.name[n], host, kind, lid[far],
            index[node[near]], number[near], live, gbits, position[n],
        )  # fmt: skip
        ports.append((terminal, hca))
    twins = builder.add_named(ports, [p.name[n] for n in order])
    ca_lmc = p.port_lmc[p.link][p.node_type[p.port_node[p.link]] == _CA]
    builder.lmc = int(ca_lmc.max(initial=0))
    builder.notes = [*_notes(unread, itself, bare), *names_notes, *twins]
    return builder.build()


def _switch_order(p: _FileArrays, trunks: list[tuple[int, int]]) -> list[int]:
    """All switches, breadth first over cables from the one with the lowest GUID, by port number;
    then, in the same way, those that cannot be reached from there."""
    near: dict[int, list[int]] = {}
    for a, b in sorted([*trunks, *((b, a) for a, b in trunks)]):
        near.setdefault(int(p.port_node[a]), []).append(int(p.port_node[b]))
    order: dict[int, None] = {}
    for root in np.flatnonzero(p.node_type == _SWITCH).tolist():
        waiting = deque([root])
        while waiting:
            if (switch := waiting.popleft()) not in order:
                order[switch] = None
                waiting += near.get(switch, ())
    return [*order]


def _notes(unread: int, itself: int, bare: int) -> Iterator[str]:
    if unread:
        yield f"{_cables(unread)} {UNREAD}: taken to be as fast as the fastest"
    if itself:
        yield f"{_cables(itself)} both ends at one switch: left out"
    if bare:
        yield f"{_cables(bare)} no switch at either end: left out"


def _cables(count: int) -> str:
    return plural(count, "cable has", "cables have")
