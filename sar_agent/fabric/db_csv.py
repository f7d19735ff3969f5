"""The fabric format `db_csv`: `ibdiagnet2.db_csv`, from its sections NODES, PORTS and LINKS.

Only these are needed, and PORTS may be missing: then neither speeds nor LIDs are known. A row that
cannot be read is passed over with a note, and so is a cable of a node or port that is not there.

Active widths and speeds are bits, as in the comment that ibdiagnet writes above PORTS and in
`IBLinkWidth` and `IBLinkSpeed` of ibutils2's ibdm: of speeds, the first byte has the classic ones,
the second FDR to NDR, the third Mellanox's own (FDR10), the fourth XDR. A port at NDR has QDR's bit
beside it (2052), so the highest bit is the speed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.csv_sections import (
    AGAIN,
    SEEN,
    Row,
    Sections,
    guid_of,
    known,
    number_of,
    read_sections,
)
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord, PortRecord
from sar_agent.fabric.rates import parse_rate

_COLUMNS = {
    "NODES": ("NODEGUID", "NODETYPE", "NUMPORTS", "NodeDesc", "PortGUID", "LocalPortNum"),
    "PORTS": (
        "NODEGUID", "PORTNUM", "PortGuid", "LID", "LMC", "LinkWidthActv", "LinkSpeedActv",
        "PortState",
    ),
    "LINKS": ("NODEGUID1", "PORTNUM1", "NODEGUID2", "PORTNUM2"),
}  # fmt: skip
_KINDS = {1: "H", 2: "S", 3: "R"}
_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {1: "SDR", 2: "DDR", 3: "QDR", 9: "FDR", 10: "EDR", 11: "HDR", 12: "NDR"}
_SPEEDS |= {17: "FDR10", 25: "XDR"}
"""The place of the highest bit, counted from 1, to the speed's name."""
_DOWN = 1
"""PortState of a port that is down (IBA, 14.2.5.6)."""


def read_db_csv(text: str, name: str = "file", mapper: HostMapper | None = None) -> Fabric:
    """The fabric of the text; `name` is for messages. `Fabric.notes` has what was passed over.

    Raises `InputError` for a file without nodes or links, for one that ends in the middle of the
    three sections, and for several in one.
    """
    dumps = len(re.findall(r"^START_NODES[ \t]*$", text, re.MULTILINE))
    if dumps > 1:
        raise InputError(
            f"the file holds {dumps} dumps of ibdiagnet, one after the other",
            file=name,
            remedy="give one dump at a time, each from a file of its own",
        )
    sections = read_sections(text, _COLUMNS)
    if sections.cut in _COLUMNS:
        raise InputError(sections.notes()[0], file=name, remedy=AGAIN)
    nodes = _Nodes()
    sections.each("NODES", nodes.add_node)
    sections.each("PORTS", nodes.add_port)
    sections.each("LINKS", nodes.add_link)
    _require("node", bool(nodes.nodes), sections, name)
    _require("cable", bool(nodes.used), sections, name)
    notes = sections.notes()
    if not sections.rows["PORTS"]:
        notes.append("it has no section PORTS: speeds and LIDs are not known")
    return assemble(name, list(nodes.nodes.values()), mapper, notes=notes, remedy=AGAIN)


class DbCsv:
    """The fabric format `db_csv`."""

    def recognises(self, text: str) -> bool:
        return bool(SEEN.search(text))

    read = staticmethod(read_db_csv)


def _require(what: str, there: bool, sections: Sections, name: str) -> None:
    if not there:
        why = "; ".join(sections.notes())
        raise InputError(
            f"no {what} in it" + (f": {why}" if why else ""), file=name, remedy=AGAIN
        )  # fmt: skip


def _byte(text: str) -> int:
    return number_of(text, 255)


def _word(text: str) -> int:
    return number_of(text, (1 << 32) - 1)


def _number(text: str, parse: Callable[[str], int]) -> int:
    """The value, or 0 where the device did not say."""
    return parse(text) if known(text) else 0


@dataclass(frozen=True, slots=True)
class _Port:
    guid: int = 0
    lid: int = 0
    lmc: int = 0
    rate: float | None = None
    up: bool = True


class _Nodes:
    """Node records, from rows in the order nodes, ports, links."""

    def __init__(self) -> None:
        self.nodes: dict[int, NodeRecord] = {}
        self.ports: dict[tuple[int, int], _Port] = {}
        self.used: set[tuple[int, int]] = set()

    def add_node(self, row: Row) -> None:
        node, kind, ports, description, port_guid, number = row.values
        guid = guid_of(node)
        letter = _KINDS[number_of(kind, 3, 1)]
        if guid in self.nodes:
            raise ValueError(f"node 0x{guid:016x} occurs twice")
        own = _Port(_number(port_guid, guid_of)), _number(number, _byte)
        self.nodes[guid] = NodeRecord(
            letter, f"{letter}-{guid:016x}", number_of(ports, 255, 1), guid, description, 0,
            row.line,
        )  # fmt: skip
        if letter != "S":
            self.ports[guid, own[1]] = own[0]

    def add_port(self, row: Row) -> None:
        node, number, port_guid, lid, lmc, width, speed, state = row.values
        guid, number_on_node = guid_of(node), _byte(number)
        lanes = _WIDTHS.get(_number(width, _byte), 0)
        name = _SPEEDS.get(_number(speed, _word).bit_length(), "")
        port = self.ports[guid, number_on_node] = _Port(
            _number(port_guid, guid_of), _number(lid, _word), _number(lmc, _byte),
            parse_rate(f"{lanes}x{name}"), _number(state, _byte) != _DOWN,
        )  # fmt: skip
        if not number_on_node and guid in self.nodes:
            self.nodes[guid].lid = port.lid

    def add_link(self, row: Row) -> None:
        first, first_port, second, second_port = row.values
        a = guid_of(first), number_of(first_port, 255, 1)
        b = guid_of(second), number_of(second_port, 255, 1)
        for guid, number in (a, b):
            if guid not in self.nodes:
                raise ValueError(f"node 0x{guid:016x} has no row in NODES")
            if number > self.nodes[guid].ports:
                raise ValueError(f"node 0x{guid:016x} has no port {number}")
            if (guid, number) in self.used:
                raise ValueError(f"port {number} of 0x{guid:016x} has two cables")
        self.used |= {a, b}
        for (near, number), (far, far_number) in ((a, b), (b, a))[: 1 + (a != b)]:
            port, other = (self.ports.get(p, _Port()) for p in ((near, number), (far, far_number)))
            peer = self.nodes[far]
            self.nodes[near].ends.append(
                PortRecord(
                    number, port.guid, port.lid, port.lmc, peer.id, far_number, other.guid,
                    other.lid or peer.lid, port.rate, port.up, row.line,
                )
            )  # fmt: skip
