"""Text of forwarding tables: the one reader, and the one writer.

OpenSM's `opensm-lfts.dump` (log flag 0x40; the file of `-U`), the output of `dump_fts` and
`ibroute`, and what we write ourselves are one format. A destination is identified by the port GUID
in its comment; LIDs only join the lines of one text: the LIDs of a port in ascending order are LID
offsets 0, 1 … A text of 20 million entries is scanned by a kernel in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import U8
from sar_agent.formats.guid_tables import DumpUnfinished, GuidTables, join_lids
from sar_agent.formats.high_ports import require_high_ports
from sar_agent.formats.port_lines import PortLines
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel, kernel_part
from sar_agent.util.text_files import read_text

HEAD = b"Unicast lids"
_HEAD, _GUID, _PORTGUID, _END = (
    np.frombuffer(word, np.uint8) for word in (HEAD, b" guid 0x", b" portguid 0x", b"lids dumped")
)
_VALID = np.frombuffer(b"valid ", np.uint8)
_NAMELESS = tuple(
    np.frombuffer(word, np.uint8)
    for word in (b"illegal port)", b"node info not available", b"(path #")
)
"""What dump_fts and ibroute say of LIDs without a port in their scan, and of invalid ones (-a)."""
_PROBLEMS = (
    "",
    "an entry before the first switch",
    "the switch before this one is cut short",
    "a switch without its guid",
    "{text!r} is not a line of an LFT dump",
    "LID {0} is out of range",
    f"port {{1}} of LID {{0}} is above {NO_ROUTE}",
    "LID {0} belonged to another port above",
    "{0} LIDs announced, {1} read",
    "it ends in the middle of a switch",
    "it has no switch",
    "no `portguid` for LID {0}",
)


def read_lfts_dump(
    path: str | Path, fabric: Fabric, strict: bool = False, say: Callable[[str], None] | None = None
) -> Routes:
    """The tables on the indices of `fabric`; a dump has no service levels.

    Nodes that are not in the dump have no route (255), and nodes that are only in the dump are left
    out, of which `say` is told; with `strict`, switches that only one of them has are refused, and
    many such destinations. Raises `InputError` with the line where the dump is cut short or of
    another format, where it has none of the fabric's switches, and where it lacks the ports above
    127.
    """
    tables = parse_tables(read_text(Path(path)).encode(), Path(path), named=True)
    routes = tables.on(fabric, whole=strict, strict=strict, say=say)
    lost = require_high_ports(fabric, routes, str(path))
    if lost and say:
        say(f"{path}: {lost}")
    return routes


def parse_tables(data: bytes, file: Path | str, *, named: bool = False) -> GuidTables:
    """The tables in an LFT dump, where with `named` each entry tells its port. Raises
    `DumpUnfinished` with the line for anything else."""
    rows = data.count(HEAD)
    switch_guid, lid_guid = np.zeros(rows + 1, np.uint64), np.zeros(MAX_LID + 1, np.uint64)
    switch_line, lid_line = np.zeros(rows + 1, np.int64), np.zeros(MAX_LID + 1, np.int64)
    nameless_line = np.zeros(MAX_LID + 1, np.int64)
    ports = np.full((rows + 1, MAX_LID + 1), NO_ROUTE, np.uint8)
    text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)
    problem, line, *numbers = _scan(
        text, named, switch_guid, lid_guid, switch_line, lid_line, nameless_line, ports
    )
    if problem:
        here = data[numbers[0] : numbers[0] + 60].partition(b"\n")[0]  # where it is no line of ours
        what = _PROBLEMS[problem].format(*numbers, text=here.decode(errors="replace").strip())
        remedy = "write it again: a dump is whole only when every switch ends in `… lids dumped`"
        raise DumpUnfinished(what, file=file, line=line or None, remedy=remedy)
    tables = join_lids(
        file, switch_guid[:rows], lid_guid, ports[:rows], switch_line[:rows], lid_line
    )
    nameless = np.flatnonzero(nameless_line)
    left_out = ((int(nameless_line[lid]), f"no `portguid` for LID {lid}") for lid in nameless)
    return replace(tables, left_out=tuple(left_out))


def lfts_text(
    fabric: Fabric, egress: U8, lmc: int, comment: Callable[[int], str]
) -> Iterator[bytes]:
    """The text of uint8[O, D, S] for all LIDs that `lmc` gives, switch by switch: offsets beyond
    these tables repeat the first. `comment` tells of a destination what its lines end in."""
    switch_lid, terminal_lid = assign_lids(fabric, lmc)
    each = 1 << lmc
    # Destinations and LID offsets of all LIDs; a switch has one.
    column = np.repeat(
        np.arange(fabric.destinations), np.repeat([each, 1], [fabric.terminals, fabric.switches])
    )
    offset = np.tile(np.arange(each), fabric.terminals)
    offset = np.concatenate([offset, np.zeros(fabric.switches, int)])
    lid = np.concatenate([terminal_lid, switch_lid])[column] + offset
    order = np.argsort(lid, kind="stable")
    column, offset = column[order], np.where(offset < len(egress), offset, 0)[order]
    comments = [f" : {comment(d)}\n".encode() for d in range(fabric.destinations)]
    lines = PortLines(
        [b"0x%04x " % number for number in lid[order].tolist()], [comments[d] for d in column]
    )
    for s in range(fabric.switches):
        ports = egress[offset, column, s]
        ports[column == fabric.terminals + s] = 0
        yield (
            f"Unicast lids [0-{int(lid.max())}] of switch Lid {switch_lid[s]} "
            f"guid 0x{fabric.switch_guid[s]:016x} ({fabric.switch_name[s]}):\n"
        ).encode()
        yield lines.text(ports)
        yield b"%d valid lids dumped\n" % np.count_nonzero(ports != NO_ROUTE)


@kernel_part
def _matches(text: Any, at: int, word: Any) -> bool:  # pragma: no cover
    if at + len(word) > len(text):
        return False
    for i in range(len(word)):  # noqa: SIM110 (numba compiles no generators)
        if text[at + i] != word[i]:
            return False
    return True


@kernel_part
def _find(text: Any, at: int, end: int, word: Any) -> int:  # pragma: no cover
    """Where `word` ends in text[at:end]; -1: it is not there."""
    for start in range(at, end - len(word) + 1):
        if text[start] == word[0] and _matches(text, start, word):
            return start + len(word)
    return -1


@kernel_part
def _number(text: Any, at: int, base: int) -> tuple[Any, int]:  # pragma: no cover
    """(the number that begins at `at`, where it ends); at most 16 digits are read."""
    value, begin = np.uint64(0), at
    while at - begin < 16:
        c = text[at]
        if 48 <= c <= 57:
            digit = c - 48
        elif base == 16 and 97 <= (c | 32) <= 102:
            digit = (c | 32) - 87
        else:
            break
        value = value * np.uint64(base) + np.uint64(digit)
        at += 1
    return value, at


@kernel_part
def _after_blanks(text: Any, at: int) -> int:  # pragma: no cover
    while text[at] == 32 or text[at] == 9:
        at += 1
    return at


@kernel
def _scan(
    text: Any,
    named: bool,
    switch_guid: Any,
    lid_guid: Any,
    switch_line: Any,
    lid_line: Any,
    nameless_line: Any,
    ports: Any,
) -> tuple[int, int, Any, Any]:  # pragma: no cover
    """Fills uint64[S + 1], uint64[L], int64[S + 1], twice int64[L] and uint8[S + 1, L] from `text`,
    which ends in a line end; returns (index of `_PROBLEMS`, line, two numbers of the problem, or
    where the line begins)."""
    at, line, rows, entries, inside = 0, 0, 0, 0, False
    while at < len(text):
        line += 1
        start = end = at
        while text[end] != 10:
            end += 1
        at = _after_blanks(text, at)
        c = text[at]
        if at == end or c == 13 or c == 35:  # blank, or #
            pass
        elif c == 48 and text[at + 1] == 120:  # 0x
            if not inside:
                return 1, line, 0, 0
            number, at = _number(text, at + 2, 16)
            lid = np.int64(number)
            begin = _after_blanks(text, at)
            number, at = _number(text, begin, 10)
            port = np.int64(number)
            if at == begin:
                return 4, line, start, 0
            if not 0 <= lid < len(lid_guid):
                return 5, line, lid, 0
            if not 0 <= port <= 255:
                return 6, line, lid, port
            entries += 1
            found = _find(text, at, end, _PORTGUID)
            if found >= 0:
                guid, at = _number(text, found, 16)
                if lid_guid[lid] != 0 and lid_guid[lid] != guid:
                    return 7, line, lid, 0
                if lid_guid[lid] == 0:
                    lid_guid[lid], lid_line[lid] = guid, line
            elif named:
                said = False
                for word in _NAMELESS:
                    said = said or _find(text, at, end, word) >= 0
                if not said:
                    return 11, line, lid, 0
                if nameless_line[lid] == 0:
                    nameless_line[lid] = line
                at = end + 1
                continue
            ports[rows - 1, lid] = port
        elif _matches(text, at, _HEAD):
            if inside:
                return 2, line, 0, 0
            found = _find(text, at, end, _GUID)
            if found < 0:
                return 3, line, 0, 0
            switch_guid[rows], at = _number(text, found, 16)
            switch_line[rows] = line
            rows, entries, inside = rows + 1, 0, True
        elif 48 <= c <= 57:
            number, at = _number(text, at, 10)
            count = np.int64(number)
            at = _after_blanks(text, at)
            # Without `valid` OpenSM prints the highest LID, not the number of entries.
            valid = _matches(text, at, _VALID)
            if not _matches(text, at + (6 if valid else 0), _END):
                return 4, line, start, 0
            if not inside or (valid and count != entries):
                return 8, line, count, entries
            inside = False
        elif c != 76 and c != 80:  # dump_fts: Lid  Out   Destination; Port     Info
            return 4, line, start, 0
        at = end + 1
    if inside:
        return 9, line, 0, 0
    return (0, 0, 0, 0) if rows else (10, line, 0, 0)
