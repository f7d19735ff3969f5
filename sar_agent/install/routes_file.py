"""The routes file: plain arrays in, the bytes of `opensm_bridge/FORMAT.md` out, and back.

This is the only thing that crosses from the agent into OpenSM, so the reader here checks every
rule that the plugin checks: the agent reads back its own file, and the dump of what is in force,
with the same suspicion.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_agent.errors import InputError

MAGIC, HEADER_SIZE = b"SARROUTE", 128
VERSIONS = (1, 2)  # 2: lanes hop by hop
NO_ROUTE, OWN_PORT, NO_SWITCH = 255, 0, 2**32 - 1
MAX_NODES, MAX_OFFSETS, MAX_LANES = 65535, 128, 15

_HEADER = struct.Struct("<8sIIQQIIBBHI32s32sQI")  # without its own CRC, which follows
_SECTION = struct.Struct("<IIQQ")
_ENGINE = re.compile(rb"([A-Za-z0-9._+-]{1,31})\0+")
_TYPES = dict(enumerate(("<u8", "<u8", "<u4", *["u1"] * 6, "<u4"), start=1))


@dataclass(frozen=True)
class RoutesFile:
    """One generation of routes. `S` switches, `T` terminals, `D = T + S` destinations, `O` offsets.

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
    service_levels: NDArray[np.uint8] | None = None  # [O, S, D], only when lanes > 1
    sl_to_vl: NDArray[np.uint8] | None = None  # [16], only when lanes > 1
    fallback_sl: NDArray[np.uint8] | None = None  # [O], only when lanes > 1
    # Lanes hop by hop, instead of the three before. P: the highest port of all switches.
    hop_lanes: NDArray[np.uint8] | None = None  # [S, P + 1, P + 1], by port in and port out
    far_ends: NDArray[np.uint32] | None = None  # [S, P + 1]: switch · 256 + port, or NO_SWITCH

    @property
    def version(self) -> int:
        return 1 if self.hop_lanes is None else 2


class Shared(NamedTuple):
    """Where two files hold the same GUIDs: index arrays, pairwise, into the rows (switches) and
    columns (terminals, then switches) of each."""

    rows: tuple[NDArray[np.intp], NDArray[np.intp]]
    columns: tuple[NDArray[np.intp], NDArray[np.intp]]


def shared_by(one: RoutesFile, other: RoutesFile) -> Shared:
    """What can be compared between two files, whatever nodes came and went between them."""

    def both(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[NDArray[np.intp], ...]:
        return np.intersect1d(a, b, assume_unique=True, return_indices=True)[1:]

    def columns(file: RoutesFile) -> NDArray[np.uint64]:
        return np.concatenate([file.terminal_guids, file.switch_guids])

    rows_a, rows_b = both(one.switch_guids, other.switch_guids)
    columns_a, columns_b = both(columns(one), columns(other))
    return Shared((rows_a, rows_b), (columns_a, columns_b))


def write_routes_file(path: str | Path, routes: RoutesFile) -> None:
    """Put `routes` in place in one step: a reader sees the whole new file or the whole old one.

    Raises InputError when the arrays break a rule of the format or the disk does not take the
    file; the old file then stays, and no temporary is left.
    """
    path = Path(path)
    write_in_place(path, encode(routes, path))


def encode(routes: RoutesFile, file: str | Path | None = None) -> bytes:
    """The bytes of the file. GUIDs may come in any order; the file has them ascending."""
    header, sections = _sorted_sections(routes, file)
    table, body, at = b"", [], HEADER_SIZE + _SECTION.size * len(sections)
    for number, section in zip(_ids(routes.version, routes.lanes), sections, strict=True):
        gap = -at % 8
        table += _SECTION.pack(number, 0, at + gap, len(section))
        body += [bytes(gap), section]
        at += gap + len(section)
    checksum = 0
    for part in (table, *body):  # one by one, since tables are large to copy
        checksum = zlib.crc32(part, checksum)
    head = _HEADER.pack(MAGIC, routes.version, HEADER_SIZE, at, *header, checksum)
    image = b"".join([head, struct.pack("<I", zlib.crc32(head)), table, *body])
    decode(image, file)  # what we would refuse to read we do not write
    return image


def _ids(version: int, lanes: int) -> tuple[int, ...]:
    """Sections of a file, in their order."""
    if version == 2:
        return (1, 2, 3, 4, 5, 9, 10)
    return tuple(range(1, 9 if lanes > 1 else 6))


def _sorted_sections(
    routes: RoutesFile, file: str | Path | None
) -> tuple[tuple[Any, ...], list[bytes]]:
    def array(name: str, value: ArrayLike | None, dtype: str, shape: tuple[int, ...]) -> Any:
        """`value` in the file's type; numpy would wrap what is too large, so look first."""
        if value is None:
            _refuse(f"{name} is missing, and {routes.lanes} lanes need it", file)
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
    if routes.hop_lanes is not None:
        wide = 1 + int(np.max(parts[3], initial=0))
        far = array("far_ends", routes.far_ends, "<u4", (switches, wide))[by_switch]
        known = far != NO_SWITCH
        if np.any(far[known] >> 8 >= switches):
            _refuse("a cable ends at a switch that is not in the list", file)
        far[known] = new_index[far[known] >> 8] << 8 | far[known] & 255
        lanes = array("hop_lanes", routes.hop_lanes, "u1", (switches, wide, wide))[by_switch]
        parts += [lanes, far]
    elif routes.lanes > 1:
        parts += [
            table("service_levels", routes.service_levels),
            array("sl_to_vl", routes.sl_to_vl, "u1", (16,)),
            array("fallback_sl", routes.fallback_sl, "u1", (offsets,)),
        ]
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
    header = (routes.generation, switches, terminals, offsets, routes.lanes, len(parts), 0)
    return (*header, routes.fabric_digest, engine, routes.made_at), [p.tobytes() for p in parts]


def read_routes_file(path: str | Path) -> RoutesFile:
    """The content, every rule of FORMAT.md checked; InputError names the first broken one."""
    return decode(read_image(path), path)


def read_image(path: str | Path, size: int = -1) -> bytes:
    """Its first `size` bytes, or all, as they are. Raises `InputError` where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"cannot read the routes file: {error.strerror}", file=path) from error


def read_generation(path: str | Path) -> int:
    """What the head of the file says, no more of which is read. Raises `InputError` where there
    is no such file, or its head is broken."""
    return generation_of(read_image(path, HEADER_SIZE), path)


def generation_of(image: bytes, file: str | Path | None = None) -> int:
    """Likewise, of bytes that begin as a routes file does."""
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
        (version in VERSIONS, f"format version {version}, this program reads 1 and 2"),
        (header_size == HEADER_SIZE, f"header size {header_size}, not {HEADER_SIZE}"),
        (size == len(image), f"{len(image)} bytes long, the header says {size}"),
        (generation > 0, "generation 0"),
        (1 <= switches <= MAX_NODES, f"{switches} switches"),
        (1 <= terminals <= MAX_NODES, f"{terminals} terminals"),
        (1 <= offsets <= MAX_OFFSETS, f"{offsets} LID offsets"),
        (version <= lanes <= MAX_LANES, f"{lanes} virtual lanes"),
        (flags == 0, f"unknown flags {flags:#x}"),
        (name is not None, "bad engine name"),
        (
            sections == len(_ids(version, lanes)),
            f"{sections} sections for {lanes} virtual lanes",
        ),
        (zlib.crc32(memoryview(image)[HEADER_SIZE:]) == payload_crc, "bad payload checksum"),
    )
    table = offsets * switches * (terminals + switches)
    lengths = [8 * switches, 8 * terminals, 4 * terminals, switches, table, table, 16, offsets]
    parts: list[Any] = []
    end, wide = HEADER_SIZE + _SECTION.size * sections, 0
    for index, number in enumerate(_ids(version, lanes)):
        if number == 9:
            wide = 1 + int(parts[3].max())
            lengths[5:7] = switches * wide**2, 4 * switches * wide
        entry = HEADER_SIZE + _SECTION.size * index
        if entry + _SECTION.size > size:
            _refuse("the section table runs past the end", file, _REMEDY)
        expected = (number, 0, end + -end % 8, lengths[index])
        if _SECTION.unpack_from(image, entry) != expected:
            _refuse(f"section {number} is missing, misplaced or of a wrong length", file, _REMEDY)
        at = expected[2]
        if at + lengths[index] > size or any(image[end:at]):
            _refuse(f"section {number} runs past the end or has dirty padding", file, _REMEDY)
        end = at + lengths[index]
        parts.append(np.frombuffer(memoryview(image)[at:end], _TYPES[number]))
    if end != size:
        _refuse("bytes after the last section", file, _REMEDY)
    shape = (offsets, switches, terminals + switches)
    forwarding = parts[4].reshape(shape)
    service_levels = sl_to_vl = fallback_sl = hop_lanes = far_ends = None
    far_good = True
    if version == 2:
        hop_lanes = parts[5].reshape(switches, wide, wide)
        far_ends = parts[6].reshape(switches, wide)
        far = far_ends[far_ends != NO_SWITCH]
        far_good = bool(np.all(far >> 8 < switches)) and bool(
            np.all((far & 255 >= 1) & (far & 255 <= parts[3][far >> 8]))
        )
    elif lanes > 1:
        service_levels, sl_to_vl, fallback_sl = parts[5].reshape(shape), parts[6], parts[7]
    own = forwarding[:, np.arange(switches), terminals + np.arange(switches)]
    zeros = np.count_nonzero(forwarding == OWN_PORT)
    highest = parts[3][None, :, None]
    _require(
        file,
        (bool(np.all(parts[0][1:] > parts[0][:-1])), "switch GUIDs are not strictly ascending"),
        (bool(np.all(parts[1][1:] > parts[1][:-1])), "terminal GUIDs are not strictly ascending"),
        (bool(np.all(parts[2] < switches)), "a terminal's leaf switch is out of range"),
        (
            bool(np.all((parts[3] >= 1) & (parts[3] <= 254))),
            "a switch's port count is out of range",
        ),
        (not own.any() and zeros == own.size, "port 0 must be, and only be, a switch's own column"),
        (
            bool(np.all((forwarding <= highest) | (forwarding == NO_ROUTE))),
            "an egress port is higher than its switch's highest port",
        ),
        (service_levels is None or bool(np.all(service_levels < 16)), "a service level above 15"),
        (sl_to_vl is None or bool(np.all(sl_to_vl < lanes)), "an SL maps to an unused lane"),
        (fallback_sl is None or bool(np.all(fallback_sl < 16)), "a fallback SL above 15"),
        (hop_lanes is None or bool(np.all(hop_lanes < lanes)), "an unused lane hop by hop"),
        (far_good, "a cable's far end is out of range"),
    )
    assert name is not None
    guids, ports, leaf, switch_ports = parts[:4]
    return RoutesFile(
        *(generation, name[1].decode(), digest, made_at, lanes),
        *(guids, ports, leaf, switch_ports, forwarding),
        *(service_levels, sl_to_vl, fallback_sl, hop_lanes, far_ends),
    )


_REMEDY = "write it again with sar-agent; the last good routes stay in force"


def _require(file: str | Path | None, *rules: tuple[bool, str]) -> None:
    for holds, what in rules:
        if not holds:
            _refuse(what, file, _REMEDY)


def _refuse(what: str, file: str | Path | None, remedy: str = "") -> NoReturn:
    raise InputError(what, file=file, remedy=remedy)


def write_in_place(path: Path, image: bytes) -> None:
    """`image` is the whole file. As `write_routes_file`."""
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(image)
            out.flush()
            os.fchmod(out.fileno(), 0o644)
            os.fsync(out.fileno())
        Path(temporary).replace(path)
        temporary = None
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise InputError(
            f"cannot write the routes file: {error.strerror}",
            file=path,
            remedy="make room or fix the folder's rights; the old file is untouched",
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
