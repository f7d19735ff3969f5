"""Forwarding tables by GUID, from the text of an LFT dump, without a fabric to put them on.

OpenSM's opensm-lfts.dump, the output of dump_fts and the `lfts_file` that we write are one format.
LIDs only join the lines of one text: a destination is its port GUID, and its LIDs in ascending
order are LID offsets 0, 1 … A text of 20 million entries is scanned by a kernel in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.model import U8, U64
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel, kernel_part

HEAD = b"Unicast lids"
_HEAD, _GUID, _PORTGUID, _END = (
    np.frombuffer(word, np.uint8) for word in (HEAD, b" guid 0x", b" portguid 0x", b"lids dumped")
)
_VALID = np.frombuffer(b"valid ", np.uint8)
_PROBLEMS = (
    "",
    "an entry before the first switch",
    "the switch before this one is cut short",
    "a switch without its guid",
    "this is not a line of an LFT dump",
    "a LID or a port is out of range",
    "this LID belonged to another port above",
    "the number of LIDs does not agree with the entries above",
    "it ends in the middle of a switch",
    "it has no switch",
    "this switch occurs twice",
)


class DumpUnfinished(InputError):
    """The text is cut short, or of another format: perhaps it is being written."""


@dataclass(frozen=True, eq=False)
class GuidTables:
    """Forwarding tables of switches, in ascending order of GUIDs."""

    switch_guid: U64
    """uint64[S]."""
    destination_guid: U64
    """uint64[D]: ports of hosts, and switches."""
    port: U8
    """uint8[O, S, D]: egress port by LID offset, switch and destination; 255: no route."""

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
        return len(np.setdiff1d(self.destination_guid, self.switch_guid))

    def entries_missing_in(self, found: GuidTables) -> int:
        """How many of these entries `found` does not have, of each switch and destination that
        both know; LID offsets beyond these repeat offset 0. Tables that share nothing differ."""
        _, want_s, have_s = np.intersect1d(
            self.switch_guid, found.switch_guid, assume_unique=True, return_indices=True
        )
        _, want_d, have_d = np.intersect1d(
            self.destination_guid, found.destination_guid, assume_unique=True, return_indices=True
        )
        if not (len(want_s) and len(want_d)):
            return max(1, int(self.port.size))
        count = 0
        for offset, table in enumerate(found.port):
            wanted = self.port[offset if offset < len(self.port) else 0][np.ix_(want_s, want_d)]
            have = table[np.ix_(have_s, have_d)]
            count += int(np.count_nonzero((wanted != have) & (wanted != NO_ROUTE)))
        return count

    def on(self, fabric: Fabric, engine: str) -> Routes:
        """The tables on the indices of `fabric`; what only one of them has, has no route. Raises
        `DumpUnfinished` where a live switch of the fabric has no table here."""
        missing = np.setdiff1d(fabric.switch_guid[fabric.switch_up], self.switch_guid)
        if len(missing):
            raise DumpUnfinished(f"it has no table of switch 0x{int(missing[0]):016x}")
        guids = np.concatenate([fabric.terminal_guid, fabric.switch_guid])
        _, ours_d, theirs_d = np.intersect1d(
            guids, self.destination_guid, assume_unique=True, return_indices=True
        )
        _, ours_s, theirs_s = np.intersect1d(
            fabric.switch_guid, self.switch_guid, assume_unique=True, return_indices=True
        )
        shape = len(self.port), fabric.destinations, fabric.switches
        egress = np.full(shape, NO_ROUTE, np.uint8)
        for offset, table in enumerate(self.port):
            egress[offset][np.ix_(ours_d, ours_s)] = table[np.ix_(theirs_s, theirs_d)].T
        own = np.arange(fabric.switches)
        egress[:, fabric.terminals + own, own] = 0
        return Routes(engine=engine, fabric_digest=fabric.digest, egress=egress)


def parse_tables(data: bytes, file: Path | str) -> GuidTables:
    """The tables in an LFT dump. Raises `DumpUnfinished` with the line for anything else."""
    rows = data.count(HEAD)
    switch_guid, lid_guid = np.zeros(rows + 1, np.uint64), np.zeros(MAX_LID + 1, np.uint64)
    ports = np.full((rows + 1, MAX_LID + 1), NO_ROUTE, np.uint8)
    text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)
    problem, line = _scan(text, switch_guid, lid_guid, ports)
    guids, rank = np.unique(switch_guid[:rows], return_index=True)
    if not problem and len(guids) != rows:
        problem, line = 10, 0
    if problem:
        raise DumpUnfinished(
            _PROBLEMS[problem],
            file=file,
            line=line or None,
            remedy="a dump is whole only when every switch ends in `… lids dumped`",
        )
    lids = np.flatnonzero(lid_guid)
    destinations, column = np.unique(lid_guid[lids], return_inverse=True)
    order = np.argsort(column, kind="stable")  # LIDs of a destination, ascending
    first = np.searchsorted(column[order], np.arange(len(destinations)))
    offset = np.arange(len(order)) - first[column[order]]
    offsets = int(offset.max(initial=0)) + 1
    table = np.full((offsets, rows, len(destinations)), NO_ROUTE, np.uint8)
    ports = ports[rank]
    for number in range(offsets):
        chosen = order[offset == number]
        table[number][:, column[chosen]] = ports[:, lids[chosen]]
        # A switch without enhanced port 0 has one LID, whatever the LMC.
        table[number] = np.where(table[number] == NO_ROUTE, table[0], table[number])
    return GuidTables(guids, destinations, table)


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


@kernel
def _scan(
    text: Any, switch_guid: Any, lid_guid: Any, ports: Any
) -> tuple[int, int]:  # pragma: no cover
    """Fills uint64[S + 1], uint64[L] and uint8[S + 1, L] from `text`, which ends in a line end;
    returns (index of `_PROBLEMS`, line)."""
    at, line, rows, entries, inside = 0, 0, 0, 0, False
    while at < len(text):
        line += 1
        end = at
        while text[end] != 10:
            end += 1
        while at < end and (text[at] == 32 or text[at] == 9):
            at += 1
        c = text[at]
        if at == end or c == 13 or c == 35:  # blank, or #
            pass
        elif c == 48 and text[at + 1] == 120:  # 0x
            if not inside:
                return 1, line
            lid, at = _number(text, at + 2, 16)
            while text[at] == 32:
                at += 1
            begin = at
            port, at = _number(text, at, 10)
            if at == begin:
                return 4, line
            if lid >= len(lid_guid) or port > 255:
                return 5, line
            entries += 1
            found = _find(text, at, end, _PORTGUID)
            if found >= 0:
                guid, at = _number(text, found, 16)
                if lid_guid[lid] != 0 and lid_guid[lid] != guid:
                    return 6, line
                lid_guid[lid] = guid
            ports[rows - 1, lid] = port
        elif _matches(text, at, _HEAD):
            if inside:
                return 2, line
            found = _find(text, at, end, _GUID)
            if found < 0:
                return 3, line
            switch_guid[rows], at = _number(text, found, 16)
            rows, entries, inside = rows + 1, 0, True
        elif 48 <= c <= 57:
            count, at = _number(text, at, 10)
            while text[at] == 32:
                at += 1
            valid = _matches(text, at, _VALID)
            if not _matches(text, at + (6 if valid else 0), _END):
                return 4, line
            if not inside or (valid and count != entries):
                return 7, line
            inside = False
        elif c != 76 and c != 80:  # dump_fts: Lid  Out   Destination; Port     Info
            return 4, line
        at = end + 1
    if inside:
        return 8, line
    return (0, 0) if rows else (9, line)
