"""`ibdiagnet2.db_csv` as ibdiagnet 2.10 writes it, made from what ibnetdiscover printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from sar_agent.fabric.node_records import NodeRecord, parse_lines
from sar_agent.fabric.rates import rate_name

DATE = "2025-03-31 23:43:18 UTC +0000"
AT = 1743464598.0
"""`DATE` as a Unix time, from date(1)."""
_WIDTHS = {"1": 1, "4": 2, "8": 4, "12": 8, "2": 16}
_SPEEDS = {
    "SDR": 1, "DDR": 2, "QDR": 4, "FDR": 256, "EDR": 512, "HDR": 1024 | 4, "NDR": 2048 | 4,
    "FDR10": 1 << 16, "XDR": 1 << 24,
}  # fmt: skip
_TYPES = {"H": 1, "S": 2, "R": 3}

Table = tuple[str, list[list[object]]]
"""Column names with commas, and the rows."""


def db_csv_of(text: str, *, escape: bool = False) -> str:
    """The file for a dump of ibnetdiscover. `escape`: quotes as CSV libraries write them."""
    return written(tables_of(text), escape=escape)


def tables_of(text: str) -> dict[str, Table]:
    """All sections, in the order in which ibdiagnet writes them."""
    return tables_of_nodes(parse_lines(text, "dump", strict=True)[0])


def tables_of_nodes(nodes: Sequence[NodeRecord]) -> dict[str, Table]:
    """The sections for node records."""
    guid = {node.id: node.guid for node in nodes}
    links: dict[tuple[int, int], list[object]] = {
        min(a, b): [f"0x{a[0]:016x}", a[1], f"0x{b[0]:016x}", b[1]]
        for node in nodes
        for end in node.ends
        for a, b in [((node.guid, end.port), (guid[end.peer], end.peer_port))]
    }
    info: list[object] = ['"IBDIAGNET 2.10.0"', f'"{DATE}"', '" -o /tmp/a --skip b,c"']
    return {
        "RUN_INFO": ("IBDIAGNET_Version,Date,Args", [info]),
        "WARNINGS_FW_CHECK": ("Scope,NodeGUID,Summary", [["NODE", "0x1", '"a, b"']]),
        "NODES": (
            "NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,"
            "PortGUID,DeviceID,PartitionCap,revision,VendorID,LocalPortNum",
            [_node(node) for node in nodes],
        ),
        "PORTS": (
            "NodeGuid,PortGuid,PortNum,MKey,GIDPrfx,MSMLID,LID,CapMsk,LinkWidthActv,"
            "LinkSpeedActv,LMC,PortPhyState,PortState,OOOSLMask",
            [row for node in nodes for row in _ports(node)],
        ),
        "SWITCHES": ("NodeGUID,LinearFDBCap", [[f"0x{n.guid:x}", 49152] for n in nodes]),
        "LINKS": ("NodeGuid1,PortNum1,NodeGuid2,PortNum2", list(links.values())),
        "AR_INFO": ("NodeGUID,e", []),
    }


def counted(columns: str, rows: Sequence[Sequence[object]]) -> Table:
    """PM_INFO or PM_DELTA: these counters of GUID, port."""
    return (
        f"NodeGUID,PortGUID,PortNumber,LinkDownedCounter,{columns}",
        [[f"0x{row[0]:016x}", f"0x{row[0]:016x}", row[1], 0, *row[2:]] for row in rows],
    )


def written(tables: dict[str, Table], *, escape: bool = False) -> str:
    """The text of the sections, in their order."""
    lines = ["# INDEX_TABLE offset:      965824, line:        6214", "", ""]
    for name, (columns, rows) in tables.items():
        lines += [f"START_{name}", columns]
        lines += [_line(row, escape) for row in rows]
        lines += [f"END_{name}", "", ""]
    return "\n".join(lines)


def _line(row: Sequence[object], escape: bool) -> str:
    if not escape:
        return ",".join(map(str, row))
    out = io.StringIO()
    fields = [str(x)[1:-1] if str(x).startswith('"') else str(x) for x in row]
    csv.writer(out, lineterminator="", quoting=csv.QUOTE_NONNUMERIC).writerow(fields)
    return out.getvalue()


def _node(node: NodeRecord) -> list[object]:
    guid = f"0x{node.guid:016x}"
    number = 0 if node.kind == "S" else min((end.port for end in node.ends), default=1)
    own = next((e.guid for e in node.ends if e.port == number and e.guid), node.guid)
    return [
        f'"{node.description}"', node.ports, _TYPES[node.kind], 1, 1, guid, guid,
        f"0x{own:016x}", 54002, 8, 160, 713, number,
    ]  # fmt: skip


def _ports(node: NodeRecord) -> Iterator[list[object]]:
    if node.kind == "S":
        yield _port(node, 0, node.guid, node.lid, 0, "1xSDR")
    for end in node.ends:
        name = rate_name(end.rate) if end.rate else None
        switch = node.kind == "S"
        yield _port(
            node, end.port, node.guid if switch else end.guid, 0 if switch else end.lid,
            0 if switch else end.lmc, name or "0x?", 4 if end.up else 1,
        )  # fmt: skip


def _port(
    node: NodeRecord, number: int, guid: int, lid: int, lmc: int, rate: str, state: int = 4
) -> list[object]:
    width, speed = rate.split("x")
    return [
        f"0x{node.guid:016x}", f"0x{guid:016x}", number, "0x0000000000000000",
        "0xfe80000000000000", 180, lid, 3880835146, _WIDTHS.get(width, 0), _SPEEDS.get(speed, 0),
        lmc, 5, state, "N/A",
    ]  # fmt: skip
