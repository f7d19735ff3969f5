"""Reader of `opensm.fdbs` (log flag 0x40; `osm.fdbs` of older ones), which is also what
`ibdmchk -f` reads and our `--export ibdm` writes.

It knows destinations by LID alone, so the LIDs must be those of the fabric file: ibnetdiscover's,
or `opensm-subnet.lst` from beside it. Most of a table goes wrong where they are not; what shows it
first is that leaf switches do not deliver at the ports where their hosts are.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.lids import assign_lids
from sar_agent.formats.dump_tables import SAME_TIME, DumpTables
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.text_files import read_text

_SWITCH = re.compile(r"(?:\w+: )?Switch (0x[0-9a-fA-F]{1,16})\b")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,4})\s*:\s*(?:(\d{1,3})\s*:.*|UNREACHABLE)$")
_HEAD = re.compile(r"LID\s*:\s*Port\s*:")
_NOBODYS = (
    f"{SAME_TIME}; with LMC, give ibnetdiscover's output as fabric, as subnet.lst does not tell it"
)
_AGAIN = "give opensm.fdbs as OpenSM writes it (log flag 0x40)"


def lids_of(fabric: Fabric) -> dict[int, tuple[int, int]]:
    """LID → (destination, LID offset)."""
    switch_lid, terminal_lid = assign_lids(fabric)
    found = {int(lid): (fabric.terminals + s, 0) for s, lid in enumerate(switch_lid)}
    found |= {int(lid): (t, 0) for t, lid in enumerate(terminal_lid)}
    for t in np.flatnonzero(fabric.terminal_lid):
        for offset in range(1, 1 << fabric.lmc):
            found.setdefault(int(terminal_lid[t]) + offset, (int(t), offset))
    return found


def read_fdbs(path: Path, fabric: Fabric) -> Routes:
    """The tables on the indices of `fabric`, LIDs as `assign_lids` has them.

    Raises `InputError`, with the line, for what is no such file, for switches and LIDs that the
    fabric does not have, and where LIDs plainly are another fabric's.
    """
    tables, lids = DumpTables(fabric, path, strict=True), lids_of(fabric)
    root, last = fabric.destination_switch, fabric.destination_port
    number, s, whole = 0, None, True
    at_home, astray = 0, list[tuple[str, int]]()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        line = line.strip()
        if not line or _HEAD.match(line):
            continue
        if found := _SWITCH.match(line):
            s, whole = tables.switch(int(found[1], 16), number), False
            if s is None:
                break  # the first one is unknown: so are all, or the next would have said it
        elif (entry := _ENTRY.match(line)) and s is not None:
            whole = True
            if entry[2] is None:
                continue
            lid, port = int(entry[1], 16), int(entry[2])
            if port > NO_ROUTE:
                raise tables.bad(f"port {port} of LID {lid} is above {NO_ROUTE}", number, _AGAIN)
            if lid not in lids:
                raise tables.bad(f"LID {lid} is nobody's in {fabric.name}", number, _NOBODYS)
            d, offset = lids[lid]
            if root[d] == s and port != last[d]:
                what = f"LID {lid} leaves by port {port}, where {fabric.destination_name(d)} is not"
                astray.append((what, number))
            at_home += bool(root[d] == s and port == last[d])
            tables.put(s, d, offset, port)
        else:
            raise tables.bad(f"{line[:60]!r} is no line of an fdbs file", number, _AGAIN)
    if not whole and s is not None:
        raise tables.bad("it ends in the middle of a switch", number, _AGAIN)
    routes = tables.routes()
    if len(astray) > at_home:
        what, number = astray[0]
        remedy = "give ibnetdiscover's output, or opensm-subnet.lst, of the same time as fabric"
        raise tables.bad(f"{what}: these LIDs are not those of {fabric.name}", number, remedy)
    return routes
