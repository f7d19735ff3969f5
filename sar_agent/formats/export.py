"""Exports routes in the formats of other tools.

- `lfts`: the dump that `opensm -R file -U` reads, in the format of `opensm-lfts.dump`.
- `ibsim`: the fabric itself as `fabric.net`, to run an OpenSM on it without hardware.
- `ibdm`: `subnet.lst`, `fdbs`, `psl`, `slvl` for `ibdmchk`, an independent checker of credit loops.
- `orcs`: `network.dot` and `guids.txt` for ORCS, a simulator of congestion.

LIDs are those of the fabric file; where it has none, they are 1 … in the order of the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import I32, I64
from sar_agent.fabric.subnet_lst import write_subnet_lst
from sar_agent.formats.lfts_dump import lfts_text
from sar_agent.formats.orcs import write_orcs
from sar_agent.formats.port_lines import PortLines
from sar_agent.routing.routes import Routes


def export_routes(folder: Path, fabric: Fabric, routes: Routes, forms: Iterable[str]) -> None:
    """Writes each of `forms` (keys of `EXPORTS`) into `folder`."""
    for form in forms:
        EXPORTS[form](folder, fabric, routes)


def _lids(fabric: Fabric) -> tuple[I32, I32, I32]:
    """(LIDs of switches, LIDs of terminals, destinations in ascending order of LIDs)."""
    switch_lid, terminal_lid = assign_lids(fabric)
    order = np.argsort(np.concatenate([terminal_lid, switch_lid]), kind="stable")
    return switch_lid, terminal_lid, order.astype(np.int32)


def _lfts(folder: Path, fabric: Fabric, routes: Routes) -> None:
    with (folder / "lfts.dump").open("wb") as file:
        file.writelines(lfts_text(fabric, routes.egress, 0, lambda d: _lfts_name(fabric, d)))


def _lfts_name(fabric: Fabric, destination: int) -> str:
    if destination < fabric.terminals:
        guid = fabric.terminal_guid[destination]
        text = fabric.terminal_description[destination]
        return f"(Channel Adapter portguid 0x{guid:016x}: '{text}')"
    switch = destination - fabric.terminals
    return f"(Switch portguid 0x{fabric.switch_guid[switch]:016x}: '{fabric.switch_name[switch]}')"


def _ibdm(folder: Path, fabric: Fabric, routes: Routes) -> None:
    switch_lid, terminal_lid, order = _lids(fabric)
    write_subnet_lst(fabric, (switch_lid, terminal_lid), folder / "subnet.lst")
    lid = np.concatenate([terminal_lid, switch_lid])[order]
    lines = PortLines([b"0x%04X : " % to for to in lid.tolist()], [b"  : 00   : yes\n"] * len(lid))
    with (folder / "fdbs").open("wb") as file:
        for s in range(fabric.switches):
            guid = int(fabric.switch_guid[s])
            file.write(b"osm_ucast_mgr_dump_ucast_routes: Switch 0x%016x\n" % guid)
            file.write(b"LID    : Port : Hops : Optimal\n")
            file.write(lines.text(routes.egress[0, order, s]))
            file.write(b"\n")
    (folder / "empty.mcfdbs").write_text("")  # ibdmchk insists on the file
    with (folder / "psl").open("w") as file:
        file.writelines(_path_levels(fabric, routes, lid, order))
    with (folder / "slvl").open("w") as file:
        file.writelines(_lane_tables(fabric, routes))


def _path_levels(fabric: Fabric, routes: Routes, lid: I32, order: I32) -> Iterator[str]:
    """Lines `0xNODEGUID dlid sl`, one per source and destination."""
    if routes.service_level is None:
        return
    for source in range(fabric.terminals):
        levels = routes.service_level[0, order, fabric.terminal_switch[source]]
        for to, level in zip(lid, levels, strict=True):
            yield f"0x{fabric.terminal_node_guid[source]:016x} {to} {level}\n"


def _lane_tables(fabric: Fabric, routes: Routes) -> Iterator[str]:
    """Lines `0xGUID in-port out-port` and the lanes of 16 levels: level i travels in lane i, or all
    levels in the lane that is chosen hop by hop."""
    if routes.virtual_lanes == 1:
        return
    hop_lane, by_level = routes.hop_lane, _level_bytes(np.arange(16) % routes.virtual_lanes)
    for s in range(fabric.switches):
        ports = range(int(fabric.switch_ports[s]) + 1)
        for i, o in itertools.product(ports, ports[1:]):
            lanes = by_level if hop_lane is None else _level_bytes([hop_lane[s, i, o]] * 16)
            yield f"0x{fabric.switch_guid[s]:016x} {i} {o} {lanes}\n"


def _level_bytes(lanes: Sequence[int] | I64) -> str:
    """Two levels a byte, as ibdmchk reads them: 0x01 is lane 0 for level 0, 1 for level 1."""
    return " ".join(f"0x{lanes[i]:x}{lanes[i + 1]:x}" for i in range(0, 16, 2))


def _ibsim(folder: Path, fabric: Fabric, routes: Routes) -> None:
    write_ibsim_net(fabric, folder / "fabric.net")


EXPORTS: dict[str, Callable[[Path, Fabric, Routes], None]] = {
    "lfts": _lfts,
    "ibdm": _ibdm,
    "ibsim": _ibsim,
    "orcs": write_orcs,
}
