"""A stand-in for the network of CINECA's Leonardo, from its list of nodes and leaf switches.

The list (`NODE 0001 RACK 1 CELL 1 ROW 1 PARTITION 1 SWITCH 10100`) gives the leaf switch of each
node and the cell of that switch; the cables between switches are not published. They are made up
from what is published of the machine: a Dragonfly+ of cells, with 18 spine switches in each cell,
each cabled once to every leaf of the cell, and one cable between the spines k of every two cells.
All cables have 200 Gbit/s, and each node has one port of 200 Gbit/s on its leaf. The real network
differs (rails, spare cables, adaptive routing), so the numbers are not Leonardo's: every result
that uses it is marked `stand-in`.
"""

from __future__ import annotations

import re
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import switch_guid
from sar_agent.fabric.model import Fabric
from sar_agent.util.plural import plural
from sar_agent.util.text_files import read_text

SPINES, RATE = 18, 200.0
REMARK = (
    "The network is a stand-in: nodes and leaf switches are the real list's, the cables between "
    "switches are made up (a Dragonfly+ with 18 spines a cell). Its numbers are not the site's."
)
_LINE = re.compile(r"NODE (\d+) RACK \d+ CELL (\d+) ROW \d+ PARTITION \d+\s+SWITCH (\d+)")


def is_node_list(path: Path) -> bool:
    """Whether the first line of a file is that of such a list."""
    try:
        with path.open(errors="replace") as file:
            return _LINE.match(file.readline()) is not None
    except OSError:
        return False


def leonardo_stand_in(path: Path) -> Fabric:
    """The fabric; hosts `lrdn0001`, … Raises `InputError` with file and line."""
    hosts: list[tuple[str, int]] = []
    cell_of: dict[int, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        match = _LINE.match(line)
        if not match:
            raise InputError(f"{line[:60]!r} is not a line NODE … SWITCH", file=path, line=number)
        node, cell, switch = match.groups()
        if cell_of.setdefault(int(switch), int(cell)) != int(cell):
            raise InputError(f"switch {switch} is in two cells", file=path, line=number)
        hosts.append((f"lrdn{node}", int(switch)))
    return _build(hosts, cell_of)


def _build(hosts: list[tuple[str, int]], cell_of: dict[int, int]) -> Fabric:
    cells = sorted(set(cell_of.values()))
    leaves = {cell: [s for s in sorted(cell_of) if cell_of[s] == cell] for cell in cells}
    on: dict[int, list[str]] = {}
    for host, switch in hosts:
        on.setdefault(switch, []).append(host)
    builder = FabricBuilder(f"stand-in for Leonardo, {plural(len(cells), 'cell')} (cables made up)")
    most = max(map(len, on.values())) + SPINES
    leaf = {
        s: builder.add_switch(switch_guid(i), f"leaf {s}", most)
        for i, s in enumerate(sorted(cell_of))
    }
    widest = max(map(len, leaves.values())) + len(cells) - 1
    spine = {
        (cell, k): builder.add_switch(
            switch_guid(len(leaf) + i * SPINES + k), f"spine {cell}-{k}", widest
        )
        for i, cell in enumerate(cells)
        for k in range(SPINES)
    }
    number = 0
    for switch in sorted(on):
        for port, host in enumerate(on[switch], SPINES + 1):
            number += 1
            builder.add_terminal(
                0x10_0000_0000 + number, f"{host} HCA-1", host, leaf[switch], port, rate=RATE
            )
    for cell in cells:
        for i, switch in enumerate(leaves[cell], 1):
            for k in range(SPINES):
                builder.add_link(leaf[switch], k + 1, spine[cell, k], i, rate=RATE)
    for i, cell in enumerate(cells):
        for j, other in enumerate(cells[i + 1 :], i + 1):
            for k in range(SPINES):
                ports = len(leaves[cell]) + j, len(leaves[other]) + i + 1
                builder.add_link(spine[cell, k], ports[0], spine[other, k], ports[1], rate=RATE)
    return builder.build()
