"""Runs ibdmchk, an independent checker, on the tables that OpenSM really installed.

ibdmchk reads OpenSM's own dumps of the fabric, the forwarding tables and the SL to VL tables
(written by a heavy sweep with log flag 0x40). The service level of each path comes from the tables
in force."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sar_agent.errors import Unavailable
from sar_agent.formats.routes_file import RoutesFile
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for

_GUIDS = re.compile(r"NodeGUID:([0-9A-Fa-f]{16}) PortGUID:([0-9A-Fa-f]{16})")
_SWITCH = re.compile(r"^(Switch|Channel Adapter|Router) (0x[0-9a-f]+)")
_ROW = re.compile(r"^(\d+)\s+(\d+)\s+:\s+([\d ]+)$")
_LANES = re.compile(r"Analyzing Fabric for Credit Loops (\d+) SLs, (\d+) VLs used")


@dataclass(frozen=True)
class IbdmchkVerdict:
    clean: bool  # whether ibdmchk found no credit loop
    lanes: int  # the number of virtual lanes in use
    text: str  # the output of ibdmchk


def ibdmchk(
    sm: OpenSM, in_force: RoutesFile, lids: Mapping[int, range], *, lmc: int = 0
) -> IbdmchkVerdict:
    """`in_force` is the plugin's dump, `lids` are the LIDs of each GUID. Raises `Unavailable` if
    ibdmchk gives no verdict. Its exit code is ignored, since it crashes after its verdict."""
    dump, work = sm.dump_dir, sm.folder
    subnet = _whole_subnet(dump / "opensm-subnet.lst", in_force)
    (work / "ibdm.psl").write_text(_path_service_levels(subnet, in_force, lids))
    (work / "ibdm.slvl").write_text(_sl_to_vl((dump / "opensm-sl2vl.dump").read_text()))
    (work / "ibdm.mcfdbs").write_text("")  # -m needs a file, even an empty one
    files = {
        "-s": dump / "opensm-subnet.lst",
        "-f": dump / "opensm.fdbs",
        "-m": work / "ibdm.mcfdbs",
        "-c": work / "ibdm.psl",
        "-d": work / "ibdm.slvl",
    }
    arguments = [word for flag, path in files.items() for word in (flag, str(path))]
    text = sm.fabric.run("ibdmchk", *arguments, "-l", str(lmc)).stdout
    match = _LANES.search(text)
    if match is None:
        raise Unavailable(f"ibdmchk gave no verdict on credit loops: {text[-300:]}")
    return IbdmchkVerdict("no credit loops found" in text, int(match[2]), text)


def _whole_subnet(path: Path, routes: RoutesFile) -> str:
    """OpenSM's dump once it contains every terminal: a sweep rewrites the file, which is incomplete
    meanwhile."""
    wanted = set(routes.terminal_guids.tolist())
    text = ""

    def whole() -> bool:
        nonlocal text
        text = path.read_text()
        return wanted <= {int(port, 16) for _, port in _GUIDS.findall(text)}

    wait_for(whole, 15, f"a whole {path.name}")
    return text


def _path_service_levels(subnet: str, routes: RoutesFile, lids: Mapping[int, range]) -> str:
    node_of = {int(port, 16): int(node, 16) for node, port in _GUIDS.findall(subnet)}
    targets = [*routes.terminal_guids.tolist(), *routes.switch_guids.tolist()]
    lines = []
    for source, leaf in zip(routes.terminal_guids.tolist(), routes.terminal_leaf, strict=True):
        for column, target in enumerate(targets):
            for offset, lid in enumerate(lids[target]):
                level = 0
                if routes.service_levels is not None:
                    level = routes.service_levels[offset, leaf, column]
                lines.append(f"{node_of[source]:#018x} {lid} {level}\n")
    return "".join(lines)


def _sl_to_vl(dump: str) -> str:
    """OpenSM's dump in the format of ibdmchk: `switch-guid in out 0x(sl0)(sl1) …`."""
    lines, switch = [], ""
    for line in dump.splitlines():
        if node := _SWITCH.match(line):
            switch = node[2] if node[1] == "Switch" else ""
        elif switch and (row := _ROW.match(line)):
            lanes = [int(lane) for lane in row[3].split()]
            pairs = " ".join(f"0x{a:x}{b:x}" for a, b in zip(lanes[::2], lanes[1::2], strict=True))
            lines.append(f"{switch} {row[1]} {row[2]} {pairs}\n")
    return "".join(lines)
