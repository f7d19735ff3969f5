"""Reader of forwarding tables as OpenSM and infiniband-diags print them, to examine the routes in
force where our plugin is not loaded.

It reads `opensm-lfts.dump` (log flag 0x40; the file of `-U`), the output of `dump_fts` and
`ibroute`, and our own export. A destination is identified by the port GUID in its comment, never by
its LID. With an LMC, a GUID occurs in several lines: the first is LID offset 0, and so on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.dump_tables import DumpTables
from sar_agent.formats.high_ports import require_high_ports
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.text_files import read_text

_SWITCH = re.compile(r"Unicast lids .*? of switch .*?guid (0x[0-9a-fA-F]{1,16})\b")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,4})\s+(\d{1,3})\b(?:.*?portguid (0x[0-9a-fA-F]{1,16}))?")
_NO_PORT = re.compile(r"illegal port\)|node info not available|\(path #\d+ out of \d+\)")
"""What dump_fts and ibroute say of LIDs that no port of their scan has, and of invalid ones (-a).
"""
_END = re.compile(r"(\d{1,9}) (valid )?lids dumped")
_TABLE_HEAD = re.compile(r"Lid\s+Out\s+Destination|Port\s+Info")
_AGAIN = "write it again: a dump is whole only when every switch ends in `… lids dumped`"


def read_lfts_dump(
    path: str | Path,
    fabric: Fabric,
    strict: bool = False,
    say: Callable[[str], None] | None = None,
) -> Routes:
    """The tables on the indices of `fabric`; a dump has no service levels.

    Nodes that are not in the dump have no route (255). Nodes that are only in the dump are left
    out, or refused if `strict` and many; `say` is told of some. Raises `InputError` with the line
    where the dump is cut short or of another format, where it has none of the fabric's switches,
    and where it lacks the ports above 127.
    """
    path = Path(path)
    tables = DumpTables(fabric, path, strict)
    _parse(read_text(path), tables)
    routes = tables.routes()
    lost = require_high_ports(fabric, routes, str(path))
    for note in (*tables.notes(), *([f"{path}: {lost}"] if lost else [])):
        if say:
            say(note)
    return routes


def _parse(text: str, tables: DumpTables) -> None:
    def bad(what: str) -> InputError:
        return tables.bad(what, number, _AGAIN)

    switch: int | None = None
    inside, any_switch, entries = False, False, 0
    seen: Counter[int] = Counter()
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line, number = lines[number].strip(), number + 1
        if not line or _TABLE_HEAD.match(line):
            continue
        if entry := _ENTRY.match(line):
            if not inside:
                raise bad("an entry before the first switch")
            lid, port, guid = int(entry[1], 16), int(entry[2]), entry[3]
            if port > NO_ROUTE:
                raise bad(f"port {port} of LID {lid} is above {NO_ROUTE}")
            entries += 1
            if guid is None and _NO_PORT.search(line):
                tables.leave_out(f"no `portguid` for LID {lid}", number)
                continue
            if guid is None:
                raise bad(f"no `portguid` for LID {lid}")
            destination = int(guid, 16)
            d = tables.destination(destination, number)
            if switch is not None and d is not None:
                tables.put(switch, d, seen[destination], port)
            seen[destination] += 1
        elif match := _SWITCH.match(line):
            if inside:
                raise bad("the switch before this one is cut short")
            switch = tables.switch(int(match[1], 16), number)
            inside, any_switch, entries = True, True, 0
            seen.clear()
        elif end := _END.match(line):
            # Without `valid` OpenSM prints the highest LID, not the number of entries.
            if not inside or (end[2] and int(end[1]) != entries):
                raise bad(f"{end[1]} LIDs announced, {entries} read")
            inside = False
        else:
            raise bad(f"{line[:60]!r} is not a line of an LFT dump")
    if inside or not any_switch:
        raise bad("it ends in the middle of a switch" if any_switch else "it has no switch")
