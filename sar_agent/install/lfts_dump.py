"""Reader of forwarding tables as OpenSM and infiniband-diags print them, for a look at what is in
force where our plugin is not loaded.

Read are `opensm-lfts.dump` (log flag 0x40; the file of `-U`), what `dump_fts` prints, and our own
export. A destination is known by the port GUID in its comment, never by its LID. With LMC a GUID
stands in several lines; the first is LID offset 0, and so on.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.text import read_text
from sar_agent.routing.routes import NO_ROUTE, Routes

ENGINE = "opensm"
"""What the routes are called: the dump does not say which engine made them."""

_SWITCH = re.compile(r"Unicast lids .* of switch .*guid (0x[0-9a-fA-F]{1,16})\b")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,4})\s+(\d{1,3})\b(?:.*portguid (0x[0-9a-fA-F]{1,16}))?")
_END = re.compile(r"(\d+) (valid )?lids dumped")
_TABLE_HEAD = re.compile(r"Lid\s+Out\s+Destination|Port\s+Info")
_AGAIN = "write it again: a dump is whole only when every switch ends in `… lids dumped`"

_Entry = tuple[int, int, int]  # destination GUID, LID offset, port


def read_lfts_dump(path: str | Path, fabric: Fabric) -> Routes:
    """The tables on the indices of `fabric`; service levels are not in a dump.

    What the dump does not know has no route (255); what only it knows is dropped. Raises
    `InputError`, with the line, where it is cut short or is something else, and where it knows
    none of the fabric's switches.
    """
    path = Path(path)
    tables = _parse(read_text(path), path)
    rows = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
    columns = {int(guid): d for d, guid in enumerate(fabric.terminal_guid)}
    columns |= {guid: fabric.terminals + s for guid, s in rows.items()}
    if not rows.keys() & tables.keys():
        raise InputError(
            f"it knows none of the switches of {fabric.name}",
            file=path,
            remedy="give the dump of this fabric's OpenSM",
        )
    offsets = 1 + max((offset for table in tables.values() for _, offset, _ in table), default=0)
    egress = np.full((offsets, fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    for guid in rows.keys() & tables.keys():
        s = rows[guid]
        for destination, offset, port in tables[guid]:
            if (d := columns.get(destination)) is not None:
                egress[offset, d, s] = port
    own = np.arange(fabric.switches)
    # A switch without enhanced port 0 has one LID, whatever the LMC; others repeat offset 0.
    for offset in range(1, offsets):
        egress[offset] = np.where(egress[offset] == NO_ROUTE, egress[0], egress[offset])
    egress[:, fabric.terminals + own, own] = 0
    return Routes(engine=ENGINE, fabric_digest=fabric.digest, egress=egress)


def _parse(text: str, path: Path) -> dict[int, list[_Entry]]:
    """Switch GUID to its entries."""

    def bad(what: str) -> InputError:
        return InputError(what, file=path, line=number, remedy=_AGAIN)

    tables: dict[int, list[_Entry]] = {}
    table: list[_Entry] | None = None
    seen: Counter[int] = Counter()
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line, number = lines[number].strip(), number + 1
        if not line or _TABLE_HEAD.match(line):
            continue
        if entry := _ENTRY.match(line):
            if table is None:
                raise bad("an entry before the first switch")
            lid, port, guid = int(entry[1], 16), int(entry[2]), entry[3]
            if port > NO_ROUTE:
                raise bad(f"port {port} of LID {lid} is above {NO_ROUTE}")
            if guid is None:
                raise bad(f"no `portguid` for LID {lid}")
            destination = int(guid, 16)
            table.append((destination, seen[destination], port))
            seen[destination] += 1
        elif switch := _SWITCH.match(line):
            if table is not None:
                raise bad("the switch before this one is cut short")
            if int(switch[1], 16) in tables:
                raise bad(f"switch {switch[1]} stands twice")
            table = tables[int(switch[1], 16)] = []
            seen.clear()
        elif end := _END.match(line):
            # Without `valid` OpenSM prints the highest LID, not how many follow.
            if table is None or (end[2] and int(end[1]) != len(table)):
                raise bad(f"{end[1]} LIDs announced, {len(table or ())} read")
            table = None
        else:
            raise bad(f"{line[:60]!r} is no line of an LFT dump")
    if table is not None or not tables:
        raise bad("it ends in the middle of a switch" if tables else "no switch in it")
    return tables
