"""The tables that a reader fills while it reads a dump of a live fabric."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.routes import NO_ROUTE, Routes

ENGINE = "opensm"
"""The engine's name in the routes: a dump does not say which engine computed them."""
MOST_UNKNOWN = 0.1
"""Destinations that the fabric does not have, as a share of those it has; more are refused."""
SAME_TIME = "take the fabric and its tables at the same time"


class DumpTables:
    """Forwarding tables on the indices of a fabric. With `strict`, switches that the fabric does
    not have, many such destinations, and switches of the fabric without a table are an
    `InputError`; otherwise they are left out."""

    def __init__(self, fabric: Fabric, path: Path, strict: bool) -> None:
        self.fabric, self.path, self.strict = fabric, path, strict
        self.rows = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
        self.columns = {int(guid): d for d, guid in enumerate(fabric.terminal_guid)}
        self.columns |= {guid: fabric.terminals + s for guid, s in self.rows.items()}
        self._egress: list[U8] = []
        self._seen: set[int] = set()
        self._found: set[int] = set()
        self._unknown: dict[str, int] = {}

    def switch(self, guid: int, line: int) -> int | None:
        """Begins the table of a switch; returns its index, or None where it is left out."""
        if guid in self._seen:
            raise self.bad(f"switch 0x{guid:016x} occurs twice", line, "write it again")
        self._seen.add(guid)
        s = self.rows.get(guid)
        if s is not None:
            self._found.add(s)
        elif self.strict and self._found:
            raise self.bad(f"switch 0x{guid:016x} is not in {self.fabric.name}", line, SAME_TIME)
        return s

    def destination(self, guid: int, line: int) -> int | None:
        """The index of a destination, or None where it is left out."""
        d = self.columns.get(guid)
        if d is None:
            self.leave_out(f"port 0x{guid:016x} is not in {self.fabric.name}", line)
        return d

    def leave_out(self, what: str, line: int) -> None:
        """Counts a destination that cannot be used."""
        self._unknown.setdefault(what, line)

    def put(self, s: int, d: int, offset: int, port: int) -> None:
        """Stores one entry."""
        while len(self._egress) <= offset:
            shape = (self.fabric.destinations, self.fabric.switches)
            self._egress.append(np.full(shape, NO_ROUTE, np.uint8))
        self._egress[offset][d, s] = port

    def notes(self) -> list[str]:
        """What is said of destinations that were left out: one sentence, or none."""
        if not self._unknown:
            return []
        count, (what, line) = len(self._unknown), next(iter(self._unknown.items()))
        these = "1 destination was" if count == 1 else f"{count} destinations were"
        return [f"{self.path}: {these} left out, the first in line {line}: {what}"]

    def routes(self, remedy: str = SAME_TIME) -> Routes:
        """The tables. Raises `InputError` where they are of another fabric or incomplete; `remedy`
        is for tables of which more than a tenth of the destinations are not in the fabric."""
        fabric = self.fabric
        if not self._found:
            raise self.bad(
                f"it has none of the switches of {fabric.name}",
                None,
                "give the dump of this fabric's OpenSM",
            )
        if self.strict and len(self._unknown) > max(1.0, MOST_UNKNOWN * fabric.destinations):
            what, line = next(iter(self._unknown.items()))
            raise self.bad(what, line, remedy)
        missing = np.setdiff1d(np.flatnonzero(fabric.switch_up), sorted(self._found))
        if self.strict and len(missing):
            name, guid = fabric.switch_name[missing[0]], fabric.switch_guid[missing[0]]
            what = f'no table of switch "{name}" (0x{guid:016x}) of {fabric.name}'
            raise self.bad(what, None, SAME_TIME)
        shape = (fabric.destinations, fabric.switches)
        egress = np.stack(self._egress or [np.full(shape, NO_ROUTE, np.uint8)])
        own = np.arange(fabric.switches)
        # A switch without enhanced port 0 has one LID, whatever the LMC; others repeat offset 0.
        for offset in range(1, len(egress)):
            egress[offset] = np.where(egress[offset] == NO_ROUTE, egress[0], egress[offset])
        egress[:, fabric.terminals + own, own] = 0
        return Routes(engine=ENGINE, fabric_digest=fabric.digest, egress=egress)

    def bad(self, what: str, line: int | None, remedy: str) -> InputError:
        """An error with the file and the line."""
        return InputError(what, file=self.path, line=line, remedy=remedy)
