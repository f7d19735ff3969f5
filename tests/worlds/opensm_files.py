"""Fabric files (opensm_bridge/FABRIC.md) written by a stand-in for the plugin, for its reader."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from sar_agent.fabric.node_records import AGAIN, parse_lines
from sar_agent.fabric.node_records import NodeRecord as Record
from sar_agent.fabric.rates import rate_name

HEADER = struct.Struct("<8sIIQIIIIQQII")
TYPES = {"H": 1, "S": 2, "R": 3}
SPEEDS = ("", "SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR")


@dataclass
class NodeRecord:
    """`ends` are port number to what it says: [GUID, LID, LMC, state, width, speed]."""

    guid: int
    letter: str
    ports: int
    name: bytes
    ends: dict[int, list[int]] = field(default_factory=dict)


def sealed(payload: bytes, counts: tuple[int, int, int, int], digest: int = 7) -> bytes:
    """The file with these arrays, and the right sizes and checksums."""
    start = HEADER.pack(
        b"SARFABRI", 1, HEADER.size, HEADER.size + len(payload), *counts, 1, digest,
        zlib.crc32(payload), 0,
    )[:-4]  # fmt: skip
    return start + struct.pack("<I", zlib.crc32(start)) + payload


def image_of(nodes: list[NodeRecord], cables: list[tuple[int, int, int, int]]) -> bytes:
    """`cables` are (index of a node, port, index of another, port)."""
    order = sorted(range(len(nodes)), key=lambda n: nodes[n].guid)
    base = list(accumulate((len(nodes[n].ends) for n in order), initial=0))
    place = {
        (n, port): base[i] + k
        for i, n in enumerate(order)
        for k, port in enumerate(sorted(nodes[n].ends))
    }
    links = sorted(sorted((place[a, ap], place[b, bp])) for a, ap, b, bp in cables)
    sortd = [nodes[n] for n in order]
    ports = [(i, p, *node.ends[p]) for i, node in enumerate(sortd) for p in sorted(node.ends)]
    columns = list(zip(*ports, strict=True)) or [()] * 8
    at, number, guid, lid, lmc, state, width, speed = columns
    payload = b"".join(
        np.array(values, dtype).tobytes()
        for values, dtype in (
            ([n.guid for n in sortd], "<u8"), (guid, "<u8"), (at, "<u4"),
            ([a for a, _ in links], "<u4"), ([b for _, b in links], "<u4"), (lid, "<u2"),
            ([TYPES[n.letter] for n in sortd], "u1"), ([n.ports for n in sortd], "u1"),
            ([len(n.name) for n in sortd], "u1"), (number, "u1"), (lmc, "u1"), (state, "u1"),
            (width, "u1"), (speed, "u1"),
        )
    )  # fmt: skip
    names = b"".join(n.name for n in sortd)
    return sealed(payload + names, (len(sortd), len(ports), len(links), len(names)))


def image_of_text(text: str) -> bytes:
    """What the plugin would write of the fabric that ibnetdiscover prints so."""
    return image_of_records(parse_lines(text, AGAIN, strict=True)[0])


def known_rate(rate: float | None) -> tuple[int, int]:
    """Lanes and speed as the file says them; zeros for what OpenSM cannot tell (XDR)."""
    width, speed = (rate_name(rate or 0.0) or "0x").split("x")
    return (int(width), SPEEDS.index(speed)) if speed in SPEEDS[1:] else (0, 0)


def image_of_records(records: list[Record]) -> bytes:
    """Likewise of node records; a cable that is down is one that OpenSM regards as unhealthy."""
    index = {record.id: i for i, record in enumerate(records)}
    nodes = [NodeRecord(r.guid, r.kind, r.ports, r.description.encode()[:63]) for r in records]
    cables = []
    for record, node in zip(records, nodes, strict=True):
        if record.kind == "S":
            node.ends[0] = [record.guid, record.lid, 0, 4, 0, 0]
        for end in record.ends:
            width, speed = known_rate(end.rate)
            own = [end.guid, end.lid] if record.kind != "S" else [record.guid, 0]
            state = 4 if end.up else 0x84
            node.ends[end.port] = [*own, end.lmc, state, width, speed]
            if (record.id, end.port) < (end.peer, end.peer_port):
                cables.append((index[record.id], end.port, index[end.peer], end.peer_port))
    return image_of(nodes, cables)
