"""Encodes arrays as a routes file, in the format of `opensm_bridge/FORMAT.md`, and decodes it.

The file is the only data that the agent passes to OpenSM, so the reader here checks every rule that
the plugin checks. The agent reads its own file, and the dump of the routes in force, with the same
suspicion.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.align import Nodes
from sar_agent.formats.table_order import faults
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.owned_files import READABLE
from sar_agent.util.text_files import write_bytes

MAGIC, HEADER_SIZE = b"SARROUTE", 128
VERSION = 4
# Flags: lanes hop by hop; a dump with entries that switches may have instead; channel numbers.
HOPS, HAD, NUMBERS = 1, 2, 4
UNKNOWN, OWN_PORT, NO_SWITCH = 254, 0, 2**32 - 1
DROPPED = 15  # the management lane: SL2VL's way to say that a level is dropped
MAX_NODES, MAX_OFFSETS, MAX_LANES, MAX_LOAD = 65535, 128, 15, 65536

_HEADER = struct.Struct("<8sIIQQIIBBHI32s32sQI")  # without its own CRC, which follows
_SECTION = struct.Struct("<IIQQ")
_ENGINE = re.compile(rb"([A-Za-z0-9._+-]{1,31})\0+")
_TYPES = dict.fromkeys((1, 2), "<u8") | dict.fromkeys((3, 10, 13, 14), "<u4")  # others: bytes


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
    table, body, at = b"", [], HEADER_SIZE + _SECTION.size * len(sections)
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
        *range(1, 6), *((6, 7, 8) * by_path), *((9,) * by_hop), 10, 11,
        *((12,) * bool(flags & HAD)), *((13, 14) * bool(flags & NUMBERS)),
    )  # fmt: skip


def _sorted_sections(
    routes: RoutesFile, file: str | Path | None
) -> tuple[tuple[Any, ...], list[bytes]]:
    def array(name: str, value: ArrayLike | None, dtype: str, shape: tuple[int, ...]) -> Any:
        """`value` in the file's type; numpy would wrap numbers that are too large, so compare."""
        if value is None:
            _refuse(f"{name} is missing, and {routes.lanes} lanes or the numbers need it", file)
        given = np.asarray(value)
        cast = given.astype(dtype)
        if given.shape != shape or not np.array_equal(cast, given):
            _refuse(f"{name} is not {dtype}{list(shape)}", file, "this is a bug of the caller")
        return cast

    switches, terminals = len(routes.switch_guids), len(routes.terminal_guids)
    offsets = len(routes.forwarding)
    tables = (offsets, switches, terminals + switches)
    guids = array("switch_guids", routes.switch_guids, "<u8", (switches,))
    ports = array("terminal_guids", routes.terminal_guids, "<u8", (terminals,))
    leaf = array("terminal_leaf", routes.terminal_leaf, "<u4", (terminals,))
    by_switch, by_terminal = np.argsort(guids, kind="stable"), np.argsort(ports, kind="stable")
    new_index = np.empty(switches, "<u4")
    new_index[by_switch] = np.arange(switches)
    if terminals and leaf.max(initial=0) >= switches:
        _refuse("a terminal's leaf switch is not in the list of switches", file)
    columns = np.concatenate([by_terminal, terminals + by_switch])

    def table(name: str, value: ArrayLike | None) -> Any:  # one axis at a time: a third quicker
        return array(name, value, "u1", tables).take(by_switch, 1).take(columns, 2)

    parts = [
        guids[by_switch],
        ports[by_terminal],
        new_index[leaf[by_terminal]],
        array("switch_ports", routes.switch_ports, "u1", (switches,))[by_switch],
        table("forwarding", routes.forwarding),
    ]
    wide = 1 + int(np.max(parts[3], initial=0))
    far = array("far_ends", routes.far_ends, "<u4", (switches, wide))[by_switch]
    known = far != NO_SWITCH
    if np.any(far[known] >> 8 >= switches):
        _refuse("a cable ends at a switch that is not in the list", file)
    far[known] = new_index[far[known] >> 8] << 8 | far[known] & 255
    if routes.hop_lanes is not None:
        shape = (switches, wide, wide)
        parts.append(array("hop_lanes", routes.hop_lanes, "u1", shape)[by_switch])
    elif routes.lanes > 1:
        parts += [
            table("service_levels", routes.service_levels),
            array("sl_to_vl", routes.sl_to_vl, "u1", (16,)),
            array("fallback_sl", routes.fallback_sl, "u1", (offsets,)),
        ]
    parts += [far, array("senders", routes.senders, "u1", (switches,))[by_switch]]
    if routes.had is not None:
        parts.append(table("had", routes.had))
    if routes.numbers is not None:
        shape = (routes.lanes, switches, wide)
        parts.append(array("numbers", routes.numbers, "<u4", shape).take(by_switch, 1))
        parts.append(array("loads", routes.loads, "<u4", (switches, wide))[by_switch])
    elif routes.loads is not None:
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
    return (*header, routes.fabric_digest, engine, routes.made_at), [p.tobytes() for p in parts]


def read_routes_file(path: str | Path) -> RoutesFile:
    """The content. Raises `InputError` with the first broken rule of FORMAT.md."""
    return decode(read_image(path), path)


def read_image(path: str | Path, size: int = -1) -> bytes:
    """The file's first `size` bytes, or all. Raises `InputError` where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"cannot read the routes file: {error.strerror}", file=path) from error


def read_generation(path: str | Path) -> int:
    """The generation in the file's header; only the header is read. Raises `InputError` where there
    is no such file or its header is broken."""
    return generation_of(read_image(path, HEADER_SIZE), path)


def generation_of(image: bytes, file: str | Path | None = None) -> int:
    """The generation of `image`, which begins with the header. Raises `InputError`."""
    _require_size(image, file)
    _require(file, *_sound_head(image))
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
        (1 <= switches <= MAX_NODES, f"{switches} switches"),
        (1 <= terminals <= MAX_NODES, f"{terminals} terminals"),
        (1 <= offsets <= MAX_OFFSETS, f"{offsets} LID offsets"),
        (flags & ~(HOPS | HAD | NUMBERS) == 0, f"unknown flags {flags:#x}"),
        (1 + (flags & HOPS) <= lanes <= MAX_LANES, f"{lanes} virtual lanes"),
        (name is not None, "bad engine name"),
        (
            sections == len(_ids(flags, lanes)),
            f"{sections} sections for {lanes} virtual lanes",
        ),
        (zlib.crc32(memoryview(image)[HEADER_SIZE:]) == payload_crc, "bad payload checksum"),
    )
    table = offsets * switches * (terminals + switches)
    lengths = {
        1: 8 * switches, 2: 8 * terminals, 3: 4 * terminals, 4: switches,
        5: table, 6: table, 7: 16, 8: offsets, 11: switches, 12: table,
    }  # fmt: skip
    part: dict[int, Any] = {}
    end, wide = HEADER_SIZE + _SECTION.size * sections, 0
    for index, number in enumerate(_ids(flags, lanes)):
        if number == 5:
            wide = 1 + int(part[4].max())
            lengths |= {9: switches * wide**2, 10: 4 * switches * wide}
            lengths |= {13: lanes * 4 * switches * wide, 14: 4 * switches * wide}
        entry, length = HEADER_SIZE + _SECTION.size * index, lengths[number]
        if entry + _SECTION.size > size:
            _refuse("the section table runs past the end", file, _REMEDY)
        at = end + -end % 8
        if _SECTION.unpack_from(image, entry) != (number, 0, at, length):
            _refuse(f"section {number} is missing, misplaced or of a wrong length", file, _REMEDY)
        if at + length > size or any(image[end:at]):
            _refuse(f"section {number} runs past the end or has dirty padding", file, _REMEDY)
        end = at + length
        part[number] = np.frombuffer(memoryview(image)[at:end], _TYPES.get(number, "u1"))
    if end != size:
        _refuse("bytes after the last section", file, _REMEDY)
    shape = (offsets, switches, terminals + switches)
    part |= {number: part[number].reshape(shape) for number in (5, 6, 12) if number in part}
    guids, ports, leaf, switch_ports, forwarding = (part[number] for number in range(1, 6))
    far_ends = part[10].reshape(switches, wide)
    far = far_ends[far_ends != NO_SWITCH]
    far_good = bool(np.all(far >> 8 < switches)) and bool(
        np.all((far & 255 >= 1) & (far & 255 <= switch_ports[far >> 8]))
    )
    if far_good:  # both ends of a cable name each other
        here = np.argwhere(far_ends != NO_SWITCH)
        far_good = bool(np.all(far_ends[far >> 8, far & 255] == here[:, 0] << 8 | here[:, 1]))
    levels, sl_to_vl, hop_lanes, had = (part.get(number) for number in (6, 7, 9, 12))
    numbers, loads = part.get(13), part.get(14)
    own_is_zero, ports_exist = _are_ports(forwarding, switch_ports, NO_ROUTE)
    _require(
        file,
        (bool(np.all(guids[1:] > guids[:-1])), "switch GUIDs are not strictly ascending"),
        (bool(np.all(ports[1:] > ports[:-1])), "terminal GUIDs are not strictly ascending"),
        (bool(np.all(leaf < switches)), "a terminal's leaf switch is out of range"),
        (
            bool(np.all((switch_ports >= 1) & (switch_ports < UNKNOWN))),
            "a switch's port count is out of range",
        ),
        (own_is_zero, "port 0 must be, and only be, a switch's own column"),
        (ports_exist, "an egress port is higher than its switch's highest port"),
        (levels is None or bool(np.all(levels < 16)), "a service level above 15"),
        (
            sl_to_vl is None or bool(np.all((sl_to_vl < lanes) | (sl_to_vl == DROPPED))),
            "an SL maps to an unused lane",
        ),
        (8 not in part or bool(np.all(part[8] < 16)), "a fallback SL above 15"),
        (hop_lanes is None or bool(np.all(hop_lanes < lanes)), "an unused lane hop by hop"),
        (far_good, "a cable's far end is out of range, or names another port as its own far end"),
        (bool(np.all(part[11] <= 1)), "a switch's senders are neither 0 nor 1"),
        (
            had is None or all(_are_ports(had, switch_ports, UNKNOWN)),
            "an entry that a switch may have instead is not one of its ports",
        ),
        (loads is None or bool(np.all(loads <= MAX_LOAD)), f"a load above {MAX_LOAD}"),
    )
    assert name is not None
    return RoutesFile(
        *(generation, name[1].decode(), digest, made_at, lanes),
        *(guids, ports, leaf, switch_ports, forwarding, far_ends, part[11]),
        *(levels, sl_to_vl, part.get(8)),
        hop_lanes=None if hop_lanes is None else hop_lanes.reshape(switches, wide, wide),
        had=had,
        numbers=None if numbers is None else numbers.reshape(lanes, switches, wide),
        loads=None if loads is None else loads.reshape(switches, wide),
    )


def _are_ports(tables: Any, highest: Any, least_word: int) -> tuple[bool, bool]:
    """Of uint8[O, S, D]: whether port 0 is in each switch's own column, and nowhere else; whether
    each entry is a port of its switch, or `least_word` or above."""
    switches = np.arange(tables.shape[1])
    own = tables[:, switches, tables.shape[2] - len(switches) + switches]
    found = [faults(table, highest, least_word) for table in tables]
    zeros = sum(zero for _, zero in found)
    return not own.any() and zeros == own.size, not any(wrong for wrong, _ in found)


_REMEDY = "write it again with sar-agent; the last good routes stay in force"


def _require(file: str | Path | None, *rules: tuple[bool, str]) -> None:
    for holds, what in rules:
        if not holds:
            _refuse(what, file, _REMEDY)


def _refuse(what: str, file: str | Path | None, remedy: str = "") -> NoReturn:
    raise InputError(what, file=file, remedy=remedy)
