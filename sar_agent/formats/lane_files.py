"""Virtual lanes of imported tables, from the files that `ibdmchk` reads beside them.

`psl` has lines `0xNODEGUID dlid sl`, the service level of each path; without the file all paths use
level 0. `slvl` has lines `0xGUID in out` and eight bytes for two levels each, the SL2VL table of
each pair of ports; without the file level i travels in lane i. The result is one of the two kinds
of lanes that `Routes` can hold: by service level, the same at every port, or by ports alone, the
same for every level. Lanes that depend on both (torus-2QoS) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.formats.fdbs import lids_of
from sar_agent.formats.guid_tables import SAME_TIME
from sar_agent.routing.routes import Routes
from sar_agent.util.text_files import read_text

LEVELS, DATA_LANES, UNSET = 16, 15, 255
_PATH = re.compile(r"(0x[0-9a-fA-F]{1,16})\s+(\d{1,9}|0x[0-9a-fA-F]{1,8})\s+(\d{1,2})$")
_LANES = re.compile(r"(0x[0-9a-fA-F]{1,16})\s+(\d{1,3})\s+(\d{1,3})((?:\s+0x[0-9a-fA-F]{1,2}){8})$")


def with_lanes(routes: Routes, fabric: Fabric, psl: Path, slvl: Path) -> Routes:
    """`routes` with the lanes of these files, of which either may be missing or empty. Raises
    `InputError` with the line of an error in them."""
    level = _levels(routes, fabric, psl)
    used = np.array([0]) if level is None else np.unique(level)
    table = _tables(fabric, slvl)
    if table is None:
        lane = np.arange(LEVELS, dtype=np.uint8)
    else:
        by_ports = table[_port_pairs(fabric, table, slvl)]
        if (by_ports[:, used] >= DATA_LANES).any():
            raise InputError("a level in use has lane 15, which carries no data", file=slvl)
        if (by_ports != by_ports[0]).any():
            if (by_ports != by_ports[:, :1]).any():
                raise InputError(
                    "the virtual lane depends on both the service level and the port",
                    file=slvl,
                    remedy="only lanes by service level, or by ports alone, can be proved",
                )
            hops: U8 = np.where(table[..., 0] < DATA_LANES, table[..., 0], 0)
            return replace(routes, virtual_lanes=1 + int(hops.max()), hop_lane=hops)
        lane = by_ports[0]
    lanes = 1 + int(lane[used].max())
    if level is None or lanes == 1:
        return routes  # all levels use one lane
    return replace(routes, virtual_lanes=lanes, service_level=lane[level])


def _levels(routes: Routes, fabric: Fabric, path: Path) -> U8 | None:
    """uint8[O, T + S, S] as `Routes.service_level`; None without a file, or an empty one."""
    if not _has_content(path):
        return None
    lids = lids_of(fabric)
    ports: dict[int, list[int]] = {}
    for t, guid in enumerate(fabric.terminal_node_guid):
        ports.setdefault(int(guid), []).append(t)
    level = np.zeros(routes.egress.shape, np.uint8)
    known = np.zeros(routes.egress.shape, np.bool_)
    turns: dict[tuple[int, int], int] = {}
    for number, match in _lines(path, _PATH, "`guid lid level`"):
        guid, lid, sl = (
            int(match[1], 16),
            int(match[2], 16 if match[2].startswith("0x") else 10),
            int(match[3]),
        )
        if guid not in ports or lid not in lids or sl >= LEVELS:
            what = f"GUID 0x{guid:016x}, LID {lid} or level {sl} is not in {fabric.name}"
            _refuse(what, path, number, SAME_TIME)
        d, offset = lids[lid]
        # Ports of one HCA share the GUID: each occurrence is the next port; the last occurrence
        # stands for all remaining ports.
        turn = turns[guid, lid] = turns.get((guid, lid), -1) + 1
        for t in ports[guid][turn:]:
            at = offset, d, fabric.terminal_switch[t]
            if offset >= len(level):
                continue
            if known[at] and level[at] != sl and turn == 0:
                _refuse(
                    f"hosts of one switch use levels {level[at]} and {sl} to LID {lid}",
                    path, number, "tables by (switch, destination) are all that can be proved",
                )  # fmt: skip
            level[at], known[at] = sl, True
    return level


def _tables(fabric: Fabric, path: Path) -> U8 | None:
    """uint8[S, P + 1, P + 1, 16]: lane by port in, port out and level; `UNSET` for pairs without a
    line. None without a file, or with an empty one."""
    if not _has_content(path):
        return None
    wide = int(fabric.switch_ports.max(initial=0)) + 1
    table = np.full((fabric.switches, wide, wide, LEVELS), UNSET, np.uint8)
    rows = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
    for number, match in _lines(path, _LANES, "`guid in out` and eight bytes"):
        s, entry, out = rows.get(int(match[1], 16)), int(match[2]), int(match[3])
        if s is None or max(entry, out) > fabric.switch_ports[s]:
            what = f"switch {match[1]} with ports {entry} and {out} is not in {fabric.name}"
            _refuse(what, path, number, SAME_TIME)
        lanes = np.array([int(byte, 16) for byte in match[4].split()], np.uint8)
        table[s, entry, out] = np.stack([lanes >> 4, lanes & 15], axis=1).ravel()
    return table


def _port_pairs(fabric: Fabric, table: U8, path: Path) -> Bool:
    """bool[S, P + 1, P + 1]: the pairs of a live port and a live channel. Raises `InputError` where
    the file has no lanes for one of them."""
    into = np.zeros(table.shape[:2], np.bool_)
    out = into.copy()
    up, live = fabric.channel_up, fabric.terminal_up
    out[fabric.channel_source[up], fabric.channel_port[up]] = True
    into |= out
    into[fabric.terminal_switch[live], fabric.terminal_switch_port[live]] = True
    pairs: Bool = into[:, :, None] & out[:, None, :]
    own = np.arange(table.shape[1])
    pairs[:, own, own] = False  # packets do not turn back
    missing = np.argwhere(pairs & (table == UNSET).any(axis=-1))
    if len(missing):
        s, entry, exit_ = missing[0]
        what = f'no lanes of switch "{fabric.switch_name[s]}" from port {entry} to port {exit_}'
        raise InputError(what, file=path, remedy=SAME_TIME)
    return pairs


def _lines(path: Path, form: re.Pattern[str], words: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Number and parts of each line. Raises `InputError` for one of another form."""
    for number, line in enumerate(map(str.strip, read_text(path).splitlines()), start=1):
        if match := form.match(line):
            yield number, match
        elif line:
            what = f"{line[:60]!r} is not {words}"
            _refuse(what, path, number, f"give {path.name} as ibdmchk reads it")


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _refuse(what: str, path: Path, line: int, remedy: str) -> NoReturn:
    raise InputError(what, file=path, line=line, remedy=remedy)
