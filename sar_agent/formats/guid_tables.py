"""Forwarding tables by GUID, as dumps have them, and the way onto the indices of a fabric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.align import Alignment, Nodes, align
from sar_agent.fabric.model import U8, U64
from sar_agent.routing.routes import NO_ROUTE, Routes

MOST_UNKNOWN_SHARE = 0.1
"""Destinations that the fabric does not have, as a share of those it has; more are refused."""
SAME_TIME = "take the fabric and its tables at the same time"
Lines = NDArray[np.int64]


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
        if strict and (foreign := self._foreign("switch", at.theirs_s, fabric)):
            raise bad(foreign[0][1], foreign[0][0])
        if strict or say:
            left_out = sorted([*self.left_out, *self._foreign("port", at.theirs_d, fabric)])
            if strict and len(left_out) > max(1.0, MOST_UNKNOWN_SHARE * fabric.destinations):
                raise bad(left_out[0][1], left_out[0][0], remedy)
            if say and left_out:
                count, (line, what) = len(left_out), left_out[0]
                these = "1 destination was" if count == 1 else f"{count} destinations were"
                say(f"{self.file}: {these} left out, the first in line {line}: {what}")
        missing = np.setdiff1d(np.flatnonzero(fabric.switch_up), at.ours_s)
        if whole and len(missing):
            name, guid = fabric.switch_name[missing[0]], fabric.switch_guid[missing[0]]
            raise bad(f'no table of switch "{name}" (0x{guid:016x}) of {fabric.name}')
        egress = by_destination(self.port, fabric, at, NO_ROUTE)
        own = np.arange(fabric.switches)
        egress[:, fabric.terminals + own, own] = 0
        return Routes(engine=engine, fabric_digest=fabric.digest, egress=egress)

    def _foreign(
        self, kind: Literal["switch", "port"], known: Lines, fabric: Fabric
    ) -> list[tuple[int, str]]:
        """Line and sentence of each switch or destination that `fabric` does not have; the others
        are `known`."""
        guids, lines = self.nodes.switches, self.switch_line
        if kind == "port":
            guids, lines = self.nodes.destinations, self.destination_line
        others = np.setdiff1d(np.arange(len(guids)), known).tolist()
        return sorted(
            (int(lines[i]), f"{kind} 0x{int(guids[i]):016x} is not in {fabric.name}")
            for i in others
        )


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


def by_destination(tables: U8, fabric: Fabric, at: Alignment, missing: int) -> U8:
    """uint8[O, D, S] on the indices of `fabric` (`ours` in `at`), from uint8[O, S, D]: a row is a
    destination in `Routes`, a switch in files. `missing` where the tables do not have the
    destination or the switch."""
    d, s = np.full(fabric.destinations, -1), np.full(fabric.switches, -1)
    d[at.ours_d], s[at.ours_s] = at.theirs_d, at.theirs_s
    tables = np.stack([table.take(s, 0).take(d, 1) for table in tables])  # faster than both at once
    made = np.ascontiguousarray(tables.swapaxes(1, 2))
    made[:, d < 0] = missing
    made[:, :, s < 0] = missing
    return made
