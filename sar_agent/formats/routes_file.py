"""Encodes arrays as a routes file, in the format of `opensm_bridge/FORMAT.md`, and decodes it.

The file is the only data that the agent passes to OpenSM, so the reader here checks every rule that
the plugin checks. The agent reads its own file, and the dump of the routes in force, with the same
suspicion.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.align import Nodes
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.owned_files import READABLE
from sar_agent.util.plural import plural
from sar_agent.util.text_files import disk_errors, write_bytes

MAGIC, HEADER_SIZE = b"SARROUTE", 128
VERSION = 4
# Flags: lanes hop by hop; a dump with entries that switches may have instead; channel numbers.
HOPS, HAD, NUMBERS = 1, 2, 4
UNKNOWN, NO_SWITCH = 254, 2**32 - 1
DROPPED = 15  # the management lane: SL2VL's way to say that a level is dropped
MAX_NODES, MAX_OFFSETS, MAX_LANES, MAX_LOAD = 65535, 128, 15, 65536

_HEADER = struct.Struct("<8sIIQQIIBBHI32s32sQI")  # without its own CRC, which follows
_SECTION = struct.Struct("<IIQQ")
_ENGINE = re.compile(rb"([A-Za-z0-9._+-]{1,31})\0+")
_PATH_SECTIONS, _HOP_SECTIONS = (6, 7, 8), (9,)
_SECTIONS = {
    1: ("switch_guids", "<u8", "S"),
    2: ("terminal_guids", "<u8", "T"),
    3: ("terminal_leaf", "<u4", "T"),
    4: ("switch_ports", "u1", "S"),
    5: ("forwarding", "u1", "OSD"),
    6: ("service_levels", "u1", "OSD"),
    7: ("sl_to_vl", "u1", "V"),
    8: ("fallback_sl", "u1", "O"),
    9: ("hop_lanes", "u1", "SPP"),
    10: ("far_ends", "<u4", "SP"),
    11: ("senders", "u1", "S"),
    12: ("had", "u1", "OSD"),
    13: ("numbers", "<u4", "LSP"),
    14: ("loads", "<u4", "SP"),
}
"""By number: field of `RoutesFile`, type, axes. S: switches, T: terminals, D: destinations, O: LID
offsets, V: the 16 service levels, L: lanes, P: ports from 0 to the highest of all switches."""


@dataclass(frozen=True)
class RoutesFile:
    """One generation of routes: `S` switches, `T` terminals, `D = T + S` destinations, `O` offsets.

    A destination column is a terminal, in the order of `terminal_guids`, or, after those, the
    own LID of a switch, in the order of `switch_guids`.
    """

    generation: int
    engine: str
    fabric_digest: bytes  # 32 bytes
    made_at: int  # Unix time, seconds
    lanes: int
    switch_guids: NDArray[np.uint64]  # [S]
    terminal_guids: NDArray[np.uint64]  # [T] port GUIDs
    terminal_leaf: NDArray[np.uint32]  # [T] index into switch_guids
    switch_ports: NDArray[np.uint8]  # [S] highest port number
    forwarding: NDArray[np.uint8]  # [O, S, D] egress port; 0 own LID, 255 no route
    # P: the highest port of all switches.
    far_ends: NDArray[np.uint32]  # [S, P + 1]: switch · 256 + port, or NO_SWITCH
    senders: NDArray[np.uint8]  # [S] 1: the proof covers hosts there that the file does not know
    # Lanes by path, where lanes > 1 and hop_lanes is None.
    service_levels: NDArray[np.uint8] | None = None  # [O, S, D]
    sl_to_vl: NDArray[np.uint8] | None = None  # [16] lane, or 15: that level is dropped
    fallback_sl: NDArray[np.uint8] | None = None  # [O]
    # Lanes hop by hop, instead of the three before.
    hop_lanes: NDArray[np.uint8] | None = None  # [S, P + 1, P + 1], by port in and port out
    # Only in dumps, where switches have not confirmed all of `forwarding` (then the entries sent
    # last): entries that they may have instead; UNKNOWN where these are not known.
    had: NDArray[np.uint8] | None = None  # [O, S, D]
    # The certificate: numbers that rise along every path, per lane; 0 where a channel has none.
    numbers: NDArray[np.uint32] | None = None  # [L, S, P + 1], L: lanes
    # Predicted load of each channel, in 1/MAX_LOAD of the largest. Comes with `numbers`.
    loads: NDArray[np.uint32] | None = None  # [S, P + 1]

    @property
    def nodes(self) -> Nodes:
        """GUIDs of columns and rows."""
        columns = np.concatenate([self.terminal_guids, self.switch_guids])
        return Nodes(columns, self.switch_guids)

    @property
    def flags(self) -> int:
        return (
            HOPS * (self.hop_lanes is not None)
            + HAD * (self.had is not None)
            + NUMBERS * (self.numbers is not None)
        )


def write_routes_file(path: str | Path, routes: RoutesFile) -> None:
    """Put `routes` in place in one step: a reader sees the whole new file or the whole old one.

    Raises InputError when the arrays break a rule of the format or the disk does not take the
    file; the old file then stays, and no temporary is left.
    """
    path = Path(path)
    write_bytes(path, encode(routes, path), READABLE)


def encode(routes: RoutesFile, file: str | Path | None = None) -> bytes:
    """The bytes of the file. GUIDs may come in any order; the file has them ascending."""
    header, sections = _sorted_sections(routes, file)
    body: list[bytes | memoryview] = []
    table, at = b"", HEADER_SIZE + _SECTION.size * len(sections)
    for number, section in zip(_ids(routes.flags, routes.lanes), sections, strict=True):
        gap = -at % 8
        table += _SECTION.pack(number, 0, at + gap, len(section))
        body += [bytes(gap), section]
        at += gap + len(section)
    checksum = 0
    for part in (table, *body):  # one by one, since tables are large to copy
        checksum = zlib.crc32(part, checksum)
    head = _HEADER.pack(MAGIC, VERSION, HEADER_SIZE, at, *header, checksum)
    image = b"".join([head, struct.pack("<I", zlib.crc32(head)), table, *body])
    decode(image, file)  # a file that the reader would refuse is not written
    return image


def _ids(flags: int, lanes: int) -> tuple[int, ...]:
    """Sections of a file, in their order."""
    by_hop, by_path = bool(flags & HOPS), lanes > 1 and not flags & HOPS
    return (
        *range(1, 6), *(_PATH_SECTIONS * by_path), *(_HOP_SECTIONS * by_hop), 10, 11,
        *((12,) * bool(flags & HAD)), *((13, 14) * bool(flags & NUMBERS)),
    )  # fmt: skip


def _sorted_sections(
    routes: RoutesFile, file: str | Path | None
) -> tuple[tuple[Any, ...], list[memoryview]]:
    """Header and the bytes of sections; switches and terminals are in the order of their GUIDs."""
    switches, terminals = len(routes.switch_guids), len(routes.terminal_guids)
    offsets = len(routes.forwarding)
    size = {"O": offsets, "S": switches, "T": terminals, "D": terminals + switches}
    size |= {"V": 16, "L": routes.lanes}

    def array(number: int) -> Any:
        """The section in the file's type; numpy would wrap too large numbers, so compare."""
        name, dtype, axes = _SECTIONS[number]
        value, shape = getattr(routes, name), [size[axis] for axis in axes]
        if value is None:
            _refuse(f"{name} is missing, and {routes.lanes} lanes or the numbers need it", file)
        given = np.asarray(value)
        cast = given.astype(dtype, copy=False)
        same = cast is given or np.array_equal(cast, given)
        if list(given.shape) != shape or not same:
            _refuse(f"{name} is not {dtype}{shape}", file, "this is a bug of the caller")
        return cast

    order = {"S": np.argsort(array(1), kind="stable"), "T": np.argsort(array(2), kind="stable")}
    order["D"] = np.concatenate([order["T"], terminals + order["S"]])
    new_index = np.empty(switches, "<u4")
    new_index[order["S"]] = np.arange(switches)
    order = {axis: at for axis, at in order.items() if np.any(at[1:] < at[:-1])}
    parts = []
    for number in _ids(routes.flags, routes.lanes):
        part = array(number)
        if number == 3:
            if part.max(initial=0) >= max(1, switches):
                _refuse("a terminal's leaf switch is not in the list of switches", file)
            part = new_index[part]
        elif number == 4:
            size["P"] = 1 + int(np.max(part, initial=0))
        elif number == 10:
            known = part != NO_SWITCH
            if np.any(part[known] >> 8 >= switches):
                _refuse("a cable ends at a switch that is not in the list", file)
            part = part.copy()  # the caller's
            part[known] = new_index[part[known] >> 8] << 8 | part[known] & 255
        parts.append(_sorted(part, _SECTIONS[number][2], order).reshape(-1).view(np.uint8).data)
    if routes.loads is not None and routes.numbers is None:
        _refuse("loads without numbers", file, "this is a bug of the caller")
    engine = routes.engine.encode("ascii", "replace")
    if not _ENGINE.fullmatch(engine + b"\0"):
        _refuse(f"bad engine name {routes.engine!r}", file, "use 1 to 31 of A-Z a-z 0-9 . _ + -")
    if len(routes.fabric_digest) != 32:
        _refuse(f"the fabric digest has {len(routes.fabric_digest)} bytes, not 32", file)
    limits = {"generation": (routes.generation, 2**64 - 1), "made_at": (routes.made_at, 2**64 - 1)}
    limits |= {"offsets": (offsets, MAX_OFFSETS), "lanes": (routes.lanes, MAX_LANES)}
    for name, (value, most) in limits.items():
        if not 0 <= value <= most:
            _refuse(f"{name} is {value}, which is not in 0 … {most}", file)
    sizes = (routes.generation, switches, terminals, offsets, routes.lanes)
    header = (*sizes, len(parts), routes.flags)
    return (*header, routes.fabric_digest, engine, routes.made_at), parts


def _sorted(part: Any, axes: str, order: Mapping[str, NDArray[np.intp]]) -> Any:
    """A copy in C's order, each axis in its new `order`. Tables of plans are transposed: their rows
    are moved as a whole, then turned in blocks that fit into the processor's cache."""
    if "D" in axes and "D" in order:
        part = part.swapaxes(1, 2).take(order["D"], 1).swapaxes(1, 2)
    copy = np.empty(part.shape, part.dtype)
    for at in range(0, part.shape[-1], 64):
        copy[..., at : at + 64] = part[..., at : at + 64]
    for axis, letter in enumerate(axes):
        copy = copy.take(order[letter], axis) if letter in order and letter != "D" else copy
    return copy


def read_routes_file(path: str | Path) -> RoutesFile:
    """The content. Raises `InputError` with the first broken rule of FORMAT.md."""
    return decode(read_image(path), path)


def read_image(path: str | Path, size: int = -1) -> bytes:
    """The file's first `size` bytes, or all. Raises `InputError` where it cannot be read."""
    with disk_errors("cannot be read", Path(path)), Path(path).open("rb") as file:
        return file.read(size)


def read_generation(path: str | Path) -> int:
    """The generation in the file's header; only the header is read. Raises `InputError` where there
    is no such file or its header is broken."""
    image = read_image(path, HEADER_SIZE)
    _require_size(image, path)
    _require(path, *_sound_head(image))
    return int(_HEADER.unpack_from(image)[4])


def _require_size(image: bytes, file: str | Path | None) -> None:
    if len(image) < HEADER_SIZE:
        _refuse(f"only {len(image)} bytes, shorter than the header", file, _REMEDY)


def _sound_head(image: bytes) -> tuple[tuple[bool, str], ...]:
    return (
        (image[: len(MAGIC)] == MAGIC, "not a routes file (bad magic)"),
        (zlib.crc32(image[:124]).to_bytes(4, "little") == image[124:128], "bad header checksum"),
    )


def decode(image: bytes, file: str | Path | None = None) -> RoutesFile:
    """Like `read_routes_file`, from bytes already in memory."""
    _require_size(image, file)
    (
        _, version, header_size, size, generation, switches, terminals, offsets, lanes,
        sections, flags, digest, engine, made_at, payload_crc,
    ) = _HEADER.unpack_from(image)  # fmt: skip
    name = _ENGINE.fullmatch(engine)
    _require(
        file,
        *_sound_head(image),
        (version == VERSION, f"format version {version}, this program reads {VERSION}"),
        (header_size == HEADER_SIZE, f"header size {header_size}, not {HEADER_SIZE}"),
        (size == len(image), f"{len(image)} bytes long, the header says {size}"),
        (generation > 0, "generation 0"),
        (1 <= switches <= MAX_NODES, f"{plural(switches, 'switch', 'switches')}"),
        (1 <= terminals <= MAX_NODES, f"{plural(terminals, 'terminal')}"),
        (1 <= offsets <= MAX_OFFSETS, f"{offsets} LID offsets"),
        (flags & ~(HOPS | HAD | NUMBERS) == 0, f"unknown flags {flags:#x}"),
        (1 + (flags & HOPS) <= lanes <= MAX_LANES, f"{lanes} virtual lanes"),
        (name is not None, "bad engine name"),
        (sections == len(_ids(flags, lanes)), f"{sections} sections for {lanes} virtual lanes"),
        (zlib.crc32(memoryview(image)[HEADER_SIZE:]) == payload_crc, "bad payload checksum"),
    )
    sizes = {"O": offsets, "S": switches, "T": terminals, "D": terminals + switches}
    sizes |= {"V": 16, "L": lanes}
    part: dict[str, Any] = {}
    end = HEADER_SIZE + _SECTION.size * sections
    for index, number in enumerate(_ids(flags, lanes)):
        key, dtype, axes = _SECTIONS[number]
        shape = [sizes[axis] for axis in axes]
        entry, length = HEADER_SIZE + _SECTION.size * index, prod(shape) * np.dtype(dtype).itemsize
        if entry + _SECTION.size > size:
            _refuse("the section table runs past the end", file, _REMEDY)
        at = end + -end % 8
        if _SECTION.unpack_from(image, entry) != (number, 0, at, length):
            _refuse(f"section {number} is missing, misplaced or of a wrong length", file, _REMEDY)
        if at + length > size or any(image[end:at]):
            _refuse(f"section {number} runs past the end or has dirty padding", file, _REMEDY)
        end = at + length
        part[key] = np.frombuffer(memoryview(image)[at:end], dtype).reshape(shape)
        if key == "switch_ports":
            sizes["P"] = 1 + int(part[key].max())
    if end != size:
        _refuse("bytes after the last section", file, _REMEDY)
    assert name is not None
    routes = RoutesFile(generation, name[1].decode(), digest, made_at, lanes, **part)
    _require(file, *_rules(routes))
    return routes


def _rules(file: RoutesFile) -> Iterator[tuple[bool, str]]:
    """What the arrays must keep to, and what is said where they do not."""
    guids, ports, lanes = file.switch_guids, file.terminal_guids, file.lanes
    highest, switches = file.switch_ports, len(file.switch_guids)
    yield bool(np.all(guids[1:] > guids[:-1])), "switch GUIDs are not strictly ascending"
    yield bool(np.all(ports[1:] > ports[:-1])), "terminal GUIDs are not strictly ascending"
    yield bool(np.all(file.terminal_leaf < switches)), "a terminal's leaf switch is out of range"
    yield (
        bool(np.all((highest >= 1) & (highest < UNKNOWN))),
        "a switch's port count is out of range",
    )
    own_is_zero, ports_exist = _are_ports(file.forwarding, highest, NO_ROUTE)
    yield own_is_zero, "port 0 must be, and only be, a switch's own column"
    yield ports_exist, "an egress port is higher than its switch's highest port"
    yield bool(np.all(_given(file.service_levels) < 16)), "a service level above 15"
    sl_to_vl = _given(file.sl_to_vl)
    used = (sl_to_vl < lanes) | (sl_to_vl == DROPPED)
    yield bool(np.all(used)), "an SL maps to an unused lane"
    yield bool(np.all(_given(file.fallback_sl) < 16)), "a fallback SL above 15"
    yield bool(np.all(_given(file.hop_lanes) < lanes)), "an unused lane hop by hop"
    yield (
        _far_ends_agree(file.far_ends, highest),
        "a cable's far end is out of range, or names another port as its own far end",
    )
    yield bool(np.all(file.senders <= 1)), "a switch's senders are neither 0 nor 1"
    yield (
        file.had is None or all(_are_ports(file.had, highest, UNKNOWN)),
        "an entry that a switch may have instead is not one of its ports",
    )
    yield bool(np.all(_given(file.loads) <= MAX_LOAD)), f"a load above {MAX_LOAD}"


def _given(values: Any) -> Any:
    return np.empty(0) if values is None else values


def _far_ends_agree(far_ends: Any, highest: Any) -> bool:
    """Whether all far ends are ports, and both ends of a cable name each other."""
    here = np.argwhere(far_ends != NO_SWITCH)
    far = far_ends[far_ends != NO_SWITCH]
    switch, port = far >> 8, far & 255
    if np.any(switch >= len(highest)) or np.any((port < 1) | (port > highest[switch])):
        return False
    return bool(np.all(far_ends[switch, port] == here[:, 0] << 8 | here[:, 1]))


def _are_ports(tables: Any, highest: Any, least_word: int) -> tuple[bool, bool]:
    """Of uint8[O, S, D]: whether port 0 is in each switch's own column, and nowhere else; whether
    each entry is a port of its switch, or `least_word` or above."""
    switches = np.arange(tables.shape[1])
    own = tables[:, switches, tables.shape[2] - len(switches) + switches]
    zeros = tables.size - np.count_nonzero(tables)
    words = 256 - least_word  # modulo 256, these come below all ports
    wrong = ((tables + np.uint8(words)).max(axis=2) > highest + words).any()
    return not own.any() and zeros == own.size, not wrong


_REMEDY = "write it again with sar-agent; the last good routes stay in force"


def _require(file: str | Path | None, *rules: tuple[bool, str]) -> None:
    for holds, what in rules:
        if not holds:
            _refuse(what, file, _REMEDY)


def _refuse(what: str, file: str | Path | None, remedy: str = "") -> NoReturn:
    raise InputError(what, file=file, remedy=remedy)
