"""Writes routes for ORCS, Hoefler's and Schneider's simulator of congestion under oblivious
routing, so that anyone can compare our simulation with it.

`network.dot` is a directed graph. ORCS takes every node whose name begins with H for a host, and
the rest of the name for its GUID in hexadecimal; names of switches begin with S. An edge's
`comment` lists the hosts to which packets take it, `*` for all. Each cable is an edge in each
direction, parallel cables are several edges, and each port of a host is a node of its own.
`guids.txt` has the hosts' GUIDs, one per line, in the order of the fabric: these are ORCS's ranks,
if the file is given as its node ordering.

Only LID offset 0 is written, and only routes to live ports of hosts: ORCS has no other
destinations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.routing.routes import Routes

GRAPH, ORDER = "network.dot", "guids.txt"


def write_orcs(folder: Path, fabric: Fabric, routes: Routes) -> None:
    """Writes `network.dot` and `guids.txt` into `folder`."""
    hosts = np.flatnonzero(fabric.is_host_port)
    with (folder / GRAPH).open("w") as file:
        file.writelines(_lines(fabric, routes, hosts))
    with (folder / ORDER).open("w") as file:
        file.writelines(f"0x{fabric.terminal_guid[t]:016x}\n" for t in hosts)


def _lines(fabric: Fabric, routes: Routes, hosts: np.ndarray) -> Iterator[str]:
    host = {int(t): f"H{fabric.terminal_guid[t]:016x}" for t in hosts}
    switch = [f"S{guid:016x}" for guid in fabric.switch_guid]
    yield "digraph network {\n"
    yield from (f'"{name}";\n' for name in host.values())
    yield from (f'"{name}";\n' for name in switch)
    for t, name in host.items():
        leaf = switch[fabric.terminal_switch[t]]
        yield f'"{name}" -> "{leaf}" [comment="*"];\n'
    names = np.array(list(host.values()))
    for s, ports in enumerate(routes.egress[0].T):
        to = ports[hosts]
        channels = range(fabric.channel_offset[s], fabric.channel_offset[s + 1])
        far = {int(fabric.channel_port[c]): switch[fabric.channel_target[c]] for c in channels
               if fabric.channel_up[c]}  # fmt: skip
        here = hosts[fabric.terminal_switch[hosts] == s]
        far |= {int(fabric.terminal_switch_port[t]): host[int(t)] for t in here}
        for port, end in sorted(far.items()):
            comment = ",".join(names[to == port])
            yield f'"{switch[s]}" -> "{end}" [comment="{comment}"];\n'
    yield "}\n"
