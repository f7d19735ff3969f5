"""The fabric format `subnet.lst`: reader and writer of `opensm-subnet.lst`, which ibutils read.

It has a line per link and direction; all numbers but the speed are hexadecimal:
`{ CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {n001 HCA-1} LID:000B PN:01
} { SW … } PHY=4x LOG=ACT SPD=25`. Other nodes are `Rt` (routers) and `**`; what OpenSM does not
know of a link is `??`. OpenSM writes the file at each heavy sweep, live links only; a link with
`LOG=DWN` is down (ibutils skip it). SPD is Gbit/s of signalling per lane, 10 for QDR and for FDR10.
A switch without a cable cannot occur in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import I32, Fabric
from sar_agent.fabric.node_records import BadLine, NodeRecord, PortRecord, few_bad_lines
from sar_agent.fabric.rates import LANE_RATE, parse_rate
from sar_agent.util.plural import plural
from sar_agent.util.text_files import write_text

AGAIN = "have OpenSM write it again (SIGHUP) and copy it when it is done"

_SIDE = (
    r"\{ (CA|SW|R[Tt]|\*\*)(?:-SM)? Ports:([0-9a-fA-F]{1,2}) SystemGUID:[0-9a-fA-F]+ "
    r"NodeGUID:([0-9a-fA-F]{1,16}) PortGUID:([0-9a-fA-F]{1,16}) VenID:\S+ DevID:\S+ Rev:\S+ "
    r"\{(.*)\} LID:([0-9a-fA-F]{1,4}) PN:([0-9a-fA-F]{1,2}) \}"
)
_FIRST_SIDE = re.compile(r"^\s*\{\s*(?:CA|SW|R[Tt]|\*\*)(?:-SM)?\s+Ports:", re.MULTILINE)
_LINE = re.compile(rf"{_SIDE} {_SIDE} PHY=(\S+) LOG=(\w+)(?: SPD=(\S+))?(?: [A-Za-z_]+=\S*)*")
_SPEED = {"2.5": "SDR", "5": "DDR", "10": "QDR", "14": "FDR", "25": "EDR", "50": "HDR"}
_SPEED |= {"100": "NDR", "200": "XDR"}
_SPEED |= {"FDR10": "FDR10"}  # ibdiagnet
_SPD = {speed: number for number, speed in _SPEED.items()} | {"FDR10": "10"}
_LIVE = ("ACT", "INI", "ARM")


def read_subnet_lst(text: str, name: str = "file", mapper: HostMapper | None = None) -> Fabric:
    """The fabric of the text; `name` is for messages.

    Links that are not ACT, INI or ARM are down. A few lines of another format are passed over with
    a note. Raises `InputError` for many, for one at the end, and for a file with only some links in
    both directions (it was cut short). A file with each link once is accepted.
    """
    nodes: dict[str, NodeRecord] = {}
    order: dict[str, NodeRecord] = {}  # by first line of their own
    ends: dict[tuple[str, int], PortRecord] = {}
    mirrored: dict[tuple[str, int], PortRecord] = {}
    bad: list[BadLine] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):  # ibdiagnet's has a heading
            continue
        match = _LINE.fullmatch(line.strip())
        if not match:
            what = f"this line is cut short or of another format: {line.strip()[:60]!r}"
            bad.append(BadLine(what, file=name, line=number, remedy=AGAIN))
            continue
        width, state, spd = match.groups()[14:]
        rate = parse_rate(f"{width}{_SPEED.get(spd or '2.5', '')}")
        (a, a_port, a_guid, a_lid), (b, b_port, b_guid, b_lid) = (
            _side(nodes, match.groups()[i : i + 7], name, number) for i in (0, 7)
        )
        order[a.id] = a
        up = state in _LIVE
        if (a.id, a_port) in ends:
            raise InputError(
                f'port {a_port} of "{a.id}" occurs twice', file=name, line=number, remedy=AGAIN
            )
        ends[(a.id, a_port)] = PortRecord(
            a_port, a_guid, a_lid, 0, b.id, b_port, b_guid, b_lid, rate, up, number
        )
        mirrored[(b.id, b_port)] = PortRecord(
            b_port, b_guid, b_lid, 0, a.id, a_port, a_guid, a_lid, rate, up, number
        )
    notes = few_bad_lines(bad, len(ends), text)
    if not nodes:
        raise InputError("no link in it", file=name, remedy=AGAIN)
    single = [end for key, end in mirrored.items() if key not in ends]
    if len(bad) < len(single) < len(ends):
        raise InputError(
            f"{plural(len(single), 'link')} occur in one direction only: the file is cut short",
            file=name, line=single[0].line, remedy=AGAIN,
        )  # fmt: skip
    for (ident, _), end in (mirrored | ends).items():
        nodes[ident].ends.append(end)
    return assemble(name, list((order | nodes).values()), mapper, notes=notes, remedy=AGAIN)


class SubnetLst:
    """The fabric format `subnet.lst`."""

    def recognises(self, text: str) -> bool:
        return bool(_FIRST_SIDE.search(text))

    read = staticmethod(read_subnet_lst)


def _side(
    nodes: dict[str, NodeRecord], fields: tuple[str, ...], name: str, number: int
) -> tuple[NodeRecord, int, int, int]:
    """The node of one half of a line, the port number, that port's GUID and LID."""
    kind, ports, node_guid, port_guid, description, lid, port = fields
    letter = {"CA": "H", "SW": "S"}.get(kind, "R")
    ident = f"{letter}-{int(node_guid, 16):016x}"
    node = nodes.get(ident)
    if node is None:
        node = NodeRecord(letter, ident, int(ports, 16), int(node_guid, 16), description, 0, number)
        nodes[ident] = node
    if letter == "S":
        node.lid = int(lid, 16)
    if not 1 <= int(port, 16) <= node.ports:
        raise InputError(f'"{ident}" has no port {int(port, 16)}', file=name, line=number)
    return node, int(port, 16), int(port_guid, 16), int(lid, 16)


def write_subnet_lst(fabric: Fabric, lids: tuple[I32, I32], path: str | Path) -> None:
    """Write the file in one step, in the order of the fabric's source.

    `lids` are (int32[S], int32[T]), as from `assign_lids`. Braces in descriptions become
    parentheses, as ibutils have no quoting; rates that no link has become the next lower rate.
    Raises `InputError` where the file cannot be written.
    """
    write_text(Path(path), "".join(_lines(fabric, *lids)))


def _lines(fabric: Fabric, switch_lid: I32, terminal_lid: I32) -> Iterator[str]:
    ports_of: dict[int, int] = {}
    for guid, number in zip(
        fabric.terminal_node_guid.tolist(), fabric.terminal_port_number.tolist(), strict=True
    ):
        ports_of[guid] = max(number, ports_of.get(guid, 0))

    def switch(s: int, port: int) -> _End:
        guid, ports = int(fabric.switch_guid[s]), int(fabric.switch_ports[s])
        half = "SW", ports, guid, guid, fabric.switch_name[s], int(switch_lid[s]), port
        return (int(fabric.switch_position[s]), port, 0), half

    def terminal(t: int) -> _End:
        node, port = int(fabric.terminal_node_guid[t]), int(fabric.terminal_port_number[t])
        guid, description = int(fabric.terminal_guid[t]), fabric.terminal_description[t]
        half = "CA", ports_of[node], node, guid, description, int(terminal_lid[t]), port
        return (int(fabric.terminal_position[t]), port, t), half

    links = [
        (
            terminal(t),
            switch(int(fabric.terminal_switch[t]), int(fabric.terminal_switch_port[t])),
            _link(
                float(fabric.terminal_rate[t]),
                fabric.terminal_speed(t),
                bool(fabric.terminal_up[t]),
            ),
        )
        for t in range(fabric.terminals)
    ]
    source, port = fabric.channel_source.tolist(), fabric.channel_port.tolist()
    for c, back in enumerate(fabric.channel_reverse.tolist()):
        if c < back:
            link = _link(
                float(fabric.channel_rate[c]), fabric.channel_speed(c), bool(fabric.channel_up[c])
            )
            links.append((switch(source[c], port[c]), switch(source[back], port[back]), link))
    rows = {}
    for one, other, link in links:
        for (place, near), (_, far) in ((one, other), (other, one)):
            rows[place] = f"{_half(*near)} {_half(*far, second=True)} {link}\n"
    return (rows[place] for place in sorted(rows))


_End = tuple[tuple[int, int, int], tuple[str, int, int, int, str, int, int]]
"""The place of its line, and the arguments of `_half`."""


def _half(
    kind: str, ports: int, node: int, port_guid: int, description: str, lid: int, port: int,
    *, second: bool = False,
) -> str:  # fmt: skip
    # OpenSM pads the second half's ids differently; the vendor does not matter to any reader.
    ids = "VenID:00000000 DevID:00000000" if second else "VenID:000000 DevID:0000"
    name = re.sub(r"[\x00-\x1f\x7f]", "?", description.translate({123: "(", 125: ")"}))
    return (
        f"{{ {kind} Ports:{ports:02X} SystemGUID:{node:016x} NodeGUID:{node:016x} "
        f"PortGUID:{port_guid:016x} {ids} Rev:00000000 {{{name}}} LID:{lid:04X} PN:{port:02X} }}"
    )


def _link(rate: float, name: str, up: bool) -> str:
    name = name if parse_rate(name) else _next_lower(rate)
    width, speed = name.split("x")
    return f"PHY={width}x LOG={'ACT' if up else 'DWN'} SPD={_SPD[speed]}"


def _next_lower(rate: float) -> str:
    slower = [speed for speed, lane in LANE_RATE.items() if 4 * lane <= rate]
    return f"4x{slower[-1]}" if slower else "1xSDR"
