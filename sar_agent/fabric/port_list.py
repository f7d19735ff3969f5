"""The fabric format `ports`: what `ibnetdiscover -p` prints, a line for each port that is up.

`CA   101  1 0x1070fd0300000010 4x HDR - SW     1  1 0x0cc47a0300000100 ( 'n001 H1' - 'leaf1' )`:
type, LID, port and GUID of a node, width and speed, and the same of the other end; a port without a
cable has only its own node. The grammar is that of `dump_ports_report` in rdma-core's
ibnetdiscover.c. The GUIDs are those of ports; all ports of a switch have one.

**Weak spot:** GUIDs of nodes are not printed. A host's node is taken to have the GUID of its port
1, as Mellanox' adapters do since ConnectX-4; ports of one description with such GUIDs are a node.
"""

from __future__ import annotations

import re

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord, PortRecord, not_understood
from sar_agent.fabric.rates import parse_rate

AGAIN = "run ibnetdiscover -p again"
_SIDE = r"(CA|SW|RT|\?\?)\s+(\d{1,5})\s+(\d{1,3})\s+0x([0-9a-fA-F]{16})"
_LINE = re.compile(rf"\s*{_SIDE}\s+(\S+)\s+(\S+)(?:\s+-\s+{_SIDE}\s+\((.*)\)|\s+'(.*)')\s*")
_SEEN = re.compile(rf"^\s*{_SIDE}\s+\d+x\s", re.MULTILINE)
_LETTER = {"CA": "H", "SW": "S", "RT": "R", "??": "R"}


def read_port_list(text: str, name: str, mapper: HostMapper | None = None) -> Fabric:
    """The fabric of the text; `name` is for messages. Lines of another form are left out, and
    counted in a note. Raises `InputError` where there is no cable, or sides contradict."""
    nodes: dict[str, NodeRecord] = {}
    foreign: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if not match:
            foreign.append(number)
            continue
        own, far = match.groups()[:4], match.groups()[6:10]
        names, alone = match[11], match[12]
        here, there = _names(names) if names is not None else (alone, "")
        node = _node(nodes, own, here, number)
        if names is None:
            continue  # no cable
        peer = _node(nodes, far, there, number)
        rate = parse_rate(match[5] + match[6])
        port, far_port = int(own[2]), int(far[2])
        node.ends.append(
            PortRecord(
                port, _guid(own), int(own[1]), 0, peer.id, far_port, _guid(far), int(far[1]), rate,
                True, number,
            )
        )  # fmt: skip
    if not any(node.ends for node in nodes.values()):
        raise InputError("no cable in it", file=name, remedy=AGAIN)
    notes = not_understood(foreign)
    return assemble(name, list(nodes.values()), mapper, notes=notes, remedy=AGAIN)


class PortList:
    """The fabric format `ports`."""

    def recognises(self, text: str) -> bool:
        return bool(_SEEN.search(text))

    read = staticmethod(read_port_list)


def _names(text: str) -> tuple[str, str]:
    """The two descriptions in `'n001 mlx5_0' - 'leaf1'`; they may hold quotes."""
    here, _, there = text.strip().partition("' - '")
    return here.removeprefix("'"), there.removesuffix("'")


def _node(
    nodes: dict[str, NodeRecord], side: tuple[str, ...], description: str, line: int
) -> NodeRecord:
    kind, lid, port, guid = side
    letter, own = _LETTER[kind], int(guid, 16)
    first = own if letter == "S" else max(1, own - int(port) + 1)
    ident = f"{letter}-{first:016x}" + (f" {description}" if letter != "S" else "")
    node = nodes.get(ident)
    if node is None:
        lids = int(lid) if letter == "S" else 0
        node = nodes[ident] = NodeRecord(letter, ident, 1, first, description, lids, line)
    node.ports = max(node.ports, int(port))
    return node


def _guid(side: tuple[str, ...]) -> int:
    """The GUID of a host's port; a switch's ports have none of their own."""
    return 0 if _LETTER[side[0]] == "S" else int(side[3], 16)
