"""Text of forwarding tables: the one reader, and the one writer.

OpenSM's `opensm-lfts.dump` (log flag 0x40; the file of `-U`), the output of `dump_fts` and
`ibroute`, and what we write ourselves are one format. A destination is identified by the port GUID
in its comment; LIDs only join the lines of one text: the LIDs of a port in ascending order are LID
offsets 0, 1 … A text of 20 million entries is scanned by a kernel in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.align import Nodes, align
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import U8, U64
from sar_agent.formats.high_ports import require_high_ports
from sar_agent.formats.port_lines import PortLines
from sar_agent.formats.table_order import by_destination
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel, kernel_part
from sar_agent.util.text_files import read_text

MOST_UNKNOWN = 0.1
"""Destinations that the fabric does not have, as a share of those it has; more are refused."""
SAME_TIME = "take the fabric and its tables at the same time"
Lines = NDArray[np.int64]
HEAD = b"Unicast lids"
_HEAD, _GUID, _PORTGUID, _END = (
    np.frombuffer(word, np.uint8) for word in (HEAD, b" guid 0x", b" portguid 0x", b"lids dumped")
)
_VALID = np.frombuffer(b"valid ", np.uint8)
# What dump_fts and ibroute say of LIDs that no port of their scan has, and of invalid ones (-a).
_ILLEGAL, _NO_INFO, _PATH = (
    np.frombuffer(word, np.uint8)
    for word in (b"illegal port)", b"node info not available", b"(path #")
)
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


class DumpUnfinished(InputError):
    """The text is cut short, or of another format: perhaps it is being written."""


@dataclass(frozen=True, eq=False)
class GuidTables:
    """Forwarding tables of switches, without a fabric to put them on."""

    file: Path | str
    nodes: Nodes
    """Each in ascending order; destinations are ports of hosts, and switches."""
    port: U8
    """uint8[O, S, D]: egress port by LID offset, switch and destination; 255: no route."""
    switch_line: Lines
    """int64[S]: where each is in the file."""
    destination_line: Lines
    """int64[D]: where each is first."""
    left_out: tuple[tuple[int, str], ...] = ()
    """Line and reason of each destination of which the text does not say which port it is."""

    @property
    def lmc(self) -> int:
        """OpenSM's LMC."""
        return (len(self.port) - 1).bit_length()

    @property
    def highest_port(self) -> int:
        """0 without a route."""
        return int(self.port.max(initial=0, where=self.port != NO_ROUTE))

    @property
    def hca_ports(self) -> int:
        """Destinations that are no switches with a table."""
        return len(np.setdiff1d(*self.nodes))

    def entries_missing_in(self, found: GuidTables) -> int:
        """How many of these entries `found` does not have, of each switch and destination that
        both know; LID offsets beyond these repeat offset 0. Tables that share nothing differ."""
        at = align(self.nodes, found.nodes)
        if not (len(at.ours_s) and len(at.ours_d)):
            return max(1, int(self.port.size))
        count = 0
        for offset, table in enumerate(found.port):
            wanted, have = at.shared(self.port[offset if offset < len(self.port) else 0], table)
            count += int(np.count_nonzero((wanted != have) & (wanted != NO_ROUTE)))
        return count

    def on(
        self,
        fabric: Fabric,
        engine: str = "opensm",
        *,
        whole: bool = True,
        strict: bool = False,
        remedy: str = SAME_TIME,
        say: Callable[[str], None] | None = None,
    ) -> Routes:
        """The tables on the indices of `fabric`. Switches and destinations that only one of them
        has get no route; `say` is told of destinations that are left out. Raises `DumpUnfinished`
        where they have none of its switches, with `whole` also where a live one has no table, and
        with `strict` where they have switches or (with `remedy`) more than a few destinations that
        it does not have."""

        def bad(what: str, line: int | None = None, remedy: str = SAME_TIME) -> DumpUnfinished:
            return DumpUnfinished(what, file=self.file, line=line, remedy=remedy)

        at = align(fabric.nodes, self.nodes)
        if not len(at.ours_s):
            remedy = "give the dump of this fabric's OpenSM"
            raise bad(f"it has none of the switches of {fabric.name}", None, remedy)
        others = np.setdiff1d(np.arange(len(self.nodes.switches)), at.theirs_s)
        if strict and len(others):
            first = others[self.switch_line[others].argmin()]
            what = f"switch 0x{int(self.nodes.switches[first]):016x} is not in {fabric.name}"
            raise bad(what, int(self.switch_line[first]))
        self._leave_out(fabric, at.theirs_d, bad, remedy, strict=strict, say=say)
        missing = np.setdiff1d(np.flatnonzero(fabric.switch_up), at.ours_s)
        if whole and len(missing):
            name, guid = fabric.switch_name[missing[0]], fabric.switch_guid[missing[0]]
            raise bad(f'no table of switch "{name}" (0x{guid:016x}) of {fabric.name}')
        egress = by_destination(self.port, fabric, at, NO_ROUTE)
        own = np.arange(fabric.switches)
        egress[:, fabric.terminals + own, own] = 0
        return Routes(engine=engine, fabric_digest=fabric.digest, egress=egress)

    def _leave_out(
        self,
        fabric: Fabric,
        known: Lines,
        bad: Callable[[str, int, str], DumpUnfinished],
        remedy: str,
        *,
        strict: bool,
        say: Callable[[str], None] | None,
    ) -> None:
        others = np.setdiff1d(np.arange(len(self.nodes.destinations)), known)
        count = len(others) + len(self.left_out)
        if not count or not (strict or say):
            return
        lines, guids = self.destination_line[others], self.nodes.destinations[others]
        unknown = [*self.left_out]
        if len(others):
            first = lines.argmin()
            what = f"port 0x{int(guids[first]):016x} is not in {fabric.name}"
            unknown.append((int(lines[first]), what))
        line, what = min(unknown)
        if strict and count > max(1.0, MOST_UNKNOWN * fabric.destinations):
            raise bad(what, line, remedy)
        if say:
            these = "1 destination was" if count == 1 else f"{count} destinations were"
            say(f"{self.file}: {these} left out, the first in line {line}: {what}")


def read_lfts_dump(
    path: str | Path,
    fabric: Fabric,
    strict: bool = False,
    say: Callable[[str], None] | None = None,
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


def join_lids(
    file: Path | str,
    switch_guid: U64,
    lid_guid: U64,
    ports: U8,
    switch_line: Lines,
    lid_line: Lines,
) -> GuidTables:
    """Tables from uint64[S], the GUID of each LID's port (uint64[L]; 0: none) and uint8[S, L], with
    the lines where switches and LIDs are first. Raises `DumpUnfinished` where a switch occurs
    twice."""
    guids, rank = np.unique(switch_guid, return_index=True)
    if len(guids) < len(switch_guid):
        again = int(np.setdiff1d(np.arange(len(switch_guid)), rank)[0])
        raise DumpUnfinished(
            f"switch 0x{int(switch_guid[again]):016x} occurs twice",
            file=file,
            line=int(switch_line[again]),
            remedy="write it again",
        )
    lids = np.flatnonzero(lid_guid)
    destinations, column = np.unique(lid_guid[lids], return_inverse=True)
    order = np.argsort(column, kind="stable")  # LIDs of a destination, ascending
    first = np.searchsorted(column[order], np.arange(len(destinations)))
    offset = np.arange(len(order)) - first[column[order]]
    offsets = int(offset.max(initial=0)) + 1
    table = np.full((offsets, len(guids), len(destinations)), NO_ROUTE, np.uint8)
    ports = ports[rank]
    for number in range(offsets):
        chosen = order[offset == number]
        table[number][:, column[chosen]] = ports[:, lids[chosen]]
        # A switch without enhanced port 0 has one LID, whatever the LMC.
        table[number] = np.where(table[number] == NO_ROUTE, table[0], table[number])
    lines = lid_line[lids[order[first]]] if len(order) else lid_line[:0]
    return GuidTables(file, Nodes(destinations, guids), table, switch_line[rank], lines)


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
                if (
                    _find(text, at, end, _ILLEGAL) < 0
                    and _find(text, at, end, _NO_INFO) < 0
                    and _find(text, at, end, _PATH) < 0
                ):
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
