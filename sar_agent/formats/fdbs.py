"""Reader of `opensm.fdbs` (log flag 0x40; older versions write `osm.fdbs`), the format that
`ibdmchk -f` reads and our `--export ibdm` writes, and of ibdiagnet's `ibdiagnet2.fdbs` and `.far`.

The file names destinations by LID alone, so the LIDs must be those of the fabric file:
ibnetdiscover's output, or the `opensm-subnet.lst` beside it. With other LIDs most of a table is
wrong; the first sign is that leaf switches do not deliver at the ports where their hosts are.

ibdiagnet names the forwarding table of the entries that follow, `PLFT_NUM: 0`; others belong to
adaptive routing, and only the first is read. A `.far` (`ibdiagnet -r` where switches route
adaptively) has, for each switch, groups of ports and lines `LID port state group`: the port is
what the LID has without adaptive routing (`Static`), and it is all that is read; a note says how
many LIDs have another state. Its grammar is that of a public reader (github.com/CrackedPoly/Rapimt,
ibfar.pest), which has read files of ibdiagnet 2; no file was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import U8
from sar_agent.formats.guid_tables import SAME_TIME, join_lids
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.plural import plural
from sar_agent.util.text_files import passed_over, read_text

SWITCH = re.compile(r"(?:\b\w{1,40}: )?Switch (0x[0-9a-fA-F]{1,16})\b")
ENTRY = re.compile(
    r"(0x[0-9a-fA-F]{1,4})(?:\s*:\s*(?:(\d{1,3})\s*:.*|UNREACHABLE)|\s+(\d{1,3})\s+([A-Za-z]\w*)\b.*)$"
)
_TABLE = re.compile(r"PLFT_NUM:\s*(\d{1,3})\b")
HEADINGS = ("#", "File version")
_HEADS = (*HEADINGS, "Groups Definition", "Group ", "Group\t", "LFT Definition", "LID", "---")
_GROUP = re.compile(r"\d+\s+\d+\s+\d+(?:\s+[\d, ]*)?$")
_OTHER_LIDS = (
    f"{SAME_TIME}; with an LMC, give ibnetdiscover's output as fabric: subnet.lst has no LMC"
)
_AGAIN = "give opensm.fdbs as OpenSM writes it (log flag 0x40)"


def lids_of(fabric: Fabric) -> dict[int, tuple[int, int]]:
    """LID → (destination, LID offset)."""
    switch_lid, terminal_lid = assign_lids(fabric)
    meaning = {int(lid): (fabric.terminals + s, 0) for s, lid in enumerate(switch_lid)}
    meaning |= {int(lid): (t, 0) for t, lid in enumerate(terminal_lid)}
    for t in np.flatnonzero(fabric.terminal_lid):
        for offset in range(1, 1 << fabric.lmc):
            meaning.setdefault(int(terminal_lid[t]) + offset, (int(t), offset))
    return meaning


def read_fdbs(path: Path, fabric: Fabric, say: Callable[[str], None] | None = None) -> Routes:
    """The tables on the indices of `fabric`, with the LIDs of `assign_lids`; `say` is told what was
    left out: some LIDs that the fabric does not have, and lines that are no entries.

    Raises `InputError` with the line for a file of another format, for switches and many LIDs that
    the fabric does not have, and where the LIDs are plainly those of another fabric.
    """

    def bad(what: str, line: int, remedy: str) -> InputError:
        return InputError(what, file=path, line=line, remedy=remedy)

    lids = lids_of(fabric)
    rows = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
    root, last = fabric.destination_switch, fabric.destination_port
    lid_guid, tables = np.zeros(MAX_LID + 1, np.uint64), list[U8]()
    guids, lines = list[int](), list[int]()
    number, s, whole, first = 0, None, True, True
    delivered, misdirected = 0, list[tuple[str, int]]()
    unknown, foreign, adaptive, others = dict[str, int](), list[tuple[int, str]](), 0, 0
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith(_HEADS):
            continue
        if match := SWITCH.match(line):
            guids.append(int(match[1], 16))
            lines.append(number)
            tables.append(np.full(MAX_LID + 1, NO_ROUTE, np.uint8))
            s, whole, first = rows.get(guids[-1]), False, True
            if s is None and len(guids) == 1:
                break  # `GuidTables.on` will say so
        elif table := _TABLE.match(line):
            first = int(table[1]) == 0
            others += not first
        elif not first or _GROUP.match(line):
            continue
        elif (entry := ENTRY.match(line)) and tables:
            whole = True
            if entry[2] is None and entry[3] is None:
                continue
            lid, port = int(entry[1], 16), int(entry[2] or entry[3])
            adaptive += entry[4] not in (None, "Static")
            if port > NO_ROUTE:
                raise bad(f"port {port} of LID {lid} is above {NO_ROUTE}", number, _AGAIN)
            if port == NO_ROUTE:
                continue
            if lid not in lids:
                unknown.setdefault(f"LID {lid} belongs to no port of {fabric.name}", number)
                continue
            d, _ = lids[lid]
            if root[d] == s and port != last[d]:
                what = f"LID {lid} leaves by port {port}, where {fabric.destination_name(d)} is not"
                misdirected.append((what, number))
            delivered += bool(root[d] == s and port == last[d])
            lid_guid[lid], tables[-1][lid] = fabric.nodes.destinations[d], port
        elif line.startswith("0x"):
            raise bad(f"{line[:60]!r} is not a line of an fdbs file", number, _AGAIN)
        else:
            foreign.append((number, f"{line[:60]!r} is not a line of an fdbs file"))
    if not whole and s is not None:
        raise bad("it ends in the middle of a switch", number, _AGAIN)
    at = np.array(lines, np.int64), np.zeros(MAX_LID + 1, np.int64)
    ports = np.array(tables).reshape(-1, MAX_LID + 1)
    found = join_lids(path, np.array(guids, np.uint64), lid_guid, ports, *at)
    found = replace(found, left_out=tuple((line, what) for what, line in unknown.items()))
    routes = found.on(fabric, strict=True, remedy=_OTHER_LIDS, say=say)
    if len(misdirected) > delivered:
        what, number = misdirected[0]
        remedy = "give ibnetdiscover's output, or opensm-subnet.lst, of the same time as fabric"
        raise bad(f"{what}: these LIDs are not those of {fabric.name}", number, remedy)
    if say:
        for note in _notes(foreign, adaptive, others):
            say(f"{path}: {note}")
    return routes


def _notes(foreign: list[tuple[int, str]], adaptive: int, others: int) -> list[str]:
    notes = passed_over(foreign)
    if adaptive:
        notes.append(
            f"{plural(adaptive, 'entry is', 'entries are')} adaptive; these are the ports that "
            "they have without adaptive "
            "routing"
        )
    if others:
        notes.append("only the first forwarding table of each switch is read")
    return notes
