"""Converts node records to a `Fabric`: pairs the two ends of every cable and names the hosts.

A cable is listed twice, once under each of its nodes. Where only one side lists it, that side is
used, and a note says so. Where the sides contradict each other, the fabric changed while it was
read, and no routes should be computed for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder, Terminal
from sar_agent.fabric.hostnames import HostMapper, Kind, name_port
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord, PortRecord
from sar_agent.fabric.rates import LANE_RATE, UNREAD
from sar_agent.util.plural import plural

MAX_LID = 0xBFFF
_SLOWEST = LANE_RATE["SDR"]


class _CableReader:
    """All cables, each once, from whichever side comes first."""

    def __init__(
        self, nodes: Sequence[NodeRecord], file: str, remedy: str, default_rate: float | None
    ) -> None:
        self.file, self.remedy = file, remedy
        known = [end.rate for node in nodes for end in node.ends if end.rate is not None]
        self.any_known = bool(known)
        self.default_rate = max(known, default=_SLOWEST) if default_rate is None else default_rate
        self.nodes: dict[str, NodeRecord] = {}
        self.one_sided: list[int] = []
        self.odd: list[str] = []
        self.unread: list[int] = []
        for node in nodes:
            if twin := self.nodes.get(node.id):
                raise self.error(
                    f'node "{node.id}" occurs twice, first in line {twin.line}', node.line
                )
            self.nodes[node.id] = node
        self.ends: dict[tuple[str, int], PortRecord] = {}
        for node in nodes:
            for end in node.ends:
                if twin_end := self.ends.get((node.id, end.port)):
                    raise self.error(
                        f'port {end.port} of "{node.id}" occurs twice, '
                        f"first in line {twin_end.line}",
                        end.line,
                    )
                self.ends[(node.id, end.port)] = end

    def error(self, what: str, line: int) -> InputError:
        return InputError(what, file=self.file, line=line, remedy=self.remedy)

    def pairs(self) -> list[tuple[NodeRecord, PortRecord, NodeRecord, PortRecord | None]]:
        """Every cable once: one side, and the other side with its record where it has one."""
        cables = []
        for (ident, port), end in self.ends.items():
            peer = self.nodes.get(end.peer)
            if peer is None and end.peer.startswith("?-"):  # ibnetdiscover prints no record of it
                self.odd.append(
                    f'"{end.peer}" at line {end.line} is a node of an unknown type: left out'
                )
                continue
            if peer is None:
                raise self.error(
                    f'"{end.peer}" is cabled here but has no lines of its own: '
                    "the file is cut short",
                    end.line,
                )
            if not 1 <= end.peer_port <= peer.ports:
                raise self.error(f'"{end.peer}" has no port {end.peer_port}', end.line)
            other = self.ends.get((end.peer, end.peer_port))
            if other is None:
                self.one_sided.append(end.line)
            elif (other.peer, other.peer_port) != (ident, port):
                raise self.error(
                    f'port {port} of "{ident}" leads to "{end.peer}"[{end.peer_port}], but line '
                    f'{other.line} says that leads to "{other.peer}"[{other.peer_port}]',
                    end.line,
                )
            elif (end.peer, end.peer_port) < (ident, port):
                continue  # listed from the other end
            cables.append((self.nodes[ident], end, peer, other))
        return cables


def assemble(
    name: str,
    nodes: Sequence[NodeRecord],
    mapper: HostMapper | None,
    *,
    notes: Sequence[str] = (),
    remedy: str = "",
    default_rate: float | None = None,
) -> Fabric:
    """The fabric of these nodes; `name` is the file, for messages.

    Switches keep the order of the nodes. Terminals are in order of their host's first node and,
    within a host, of HCA name (numbers as numbers), port number and GUID: that is their rail.
    `default_rate` (Gbit/s) is for cables without a readable rate; without it they are taken to be
    as fast as the fastest, and a note says so: most often the dumping tool is older than the speed.

    Raises `InputError` for missing peers, nodes or ports that are listed twice, and sides that
    contradict each other.
    """
    builder = FabricBuilder(name)
    builder.notes += notes
    cables = _CableReader(nodes, name, remedy, default_rate)
    switches: dict[str, int] = {}
    places: dict[tuple[str, int], int] = {}  # one HCA may be several records
    for node in nodes:
        real = (node.kind, _node_guid(node))
        place = places.setdefault(real, builder.next_position())
        if node.kind == "S":
            switches[node.id] = builder.add_switch(
                node.guid,
                node.extras.get("description", node.description) or node.id,
                node.ports,
                lid=_lid(node.lid),
                position=place,
            )
    ports: list[tuple[Terminal, str]] = []
    adapters = ((_node_guid(n), _description(n)) for n in nodes if n.kind == "H")
    mapper, names_notes = (mapper or HostMapper()).among(adapters)
    for a, end, b, other in cables.pairs():
        if a is b:
            cables.odd.append(f'"{a.id}" is cabled to itself at line {end.line}: left out')
        elif a.kind != "S" and b.kind != "S":
            cables.odd.append(
                f'"{a.id}" and "{b.id}" are cabled to each other without a switch at line '
                f"{end.line}: left out"
            )
        elif a.kind == b.kind:
            builder.add_link(
                switches[a.id], end.port, switches[b.id], end.peer_port,
                up=end.up and (other is None or other.up), rate=_rate(cables, end, other),
            )  # fmt: skip
        else:
            near, own, far = (end, other, b) if a.kind == "S" else (other, end, a)
            switch = switches[a.id if a.kind == "S" else b.id]
            place = places[(far.kind, _node_guid(far))]
            ports.append(_terminal(mapper, cables, far, own, near, switch, place))
    leaves = [n.description or n.id for n in nodes if n.kind == "S"]
    twins = builder.add_named(ports, leaves)
    lmcs = {end.lmc for node in nodes if node.kind == "H" for end in node.ends}
    builder.lmc = max(lmcs & set(range(8)), default=0)
    if lines := cables.one_sided:
        builder.notes.append(
            f"{_count_of_cables(len(lines), 'is', 'are')} mentioned at one side only, "
            f"the first at line {min(lines)}"
        )
    if (lines := cables.unread) and default_rate is None:
        builder.notes.append(
            f"{_count_of_cables(len(lines), 'has', 'have')} {UNREAD} and "
            f"{'is' if len(lines) == 1 else 'are'} taken to be as fast as "
            + ("the fastest" if cables.any_known else "each other")
            + f", {cables.default_rate:g} Gbit/s; the first at line {min(lines)}"
        )
    builder.notes += cables.odd
    builder.notes += names_notes
    builder.notes += twins
    return builder.build()


def _terminal(
    mapper: HostMapper,
    cables: _CableReader,
    node: NodeRecord,
    own: PortRecord | None,
    near: PortRecord | None,
    switch: int,
    position: int,
) -> tuple[Terminal, str]:
    """The terminal of a cable between a switch and a channel adapter or router, of which at least
    one end has a record; and its HCA."""
    end = own or near
    assert end is not None
    extras, node_guid = node.extras, _node_guid(node)
    number = own.port if own else end.peer_port
    guid = (own.guid if own else 0) or (near.peer_guid if near else 0) or node.guid + number
    number = int(extras.get("port", number))
    description = _description(node)
    host, hca, kind = name_port(mapper, node.kind, node_guid, description, number)
    terminal = Terminal(
        guid, node_guid, number, description, extras.get("host", host),
        Kind(extras.get("kind", kind)),
        _lid(own.lid if own else 0) or _lid(near.peer_lid if near else 0),
        switch, near.port if near else end.peer_port,
        all(side.up for side in (own, near) if side),
        _rate(cables, end, near if own else None), position,
    )  # fmt: skip
    return terminal, hca


def _count_of_cables(count: int, one: str, many: str) -> str:
    return plural(count, f"cable {one}", f"cables {many}")


def _description(node: NodeRecord) -> str:
    return str(node.extras.get("description", node.description))


def _node_guid(node: NodeRecord) -> int:
    return int(node.extras.get("node_guid", node.guid))


def _rate(cables: _CableReader, end: PortRecord, other: PortRecord | None) -> float:
    """The lower rate of the two sides; the default where neither is readable."""
    known = [e.rate for e in (end, other) if e is not None and e.rate is not None]
    if not known:
        cables.unread.append(min(e.line for e in (end, other) if e))
    return min(known, default=cables.default_rate)


def _lid(lid: int) -> int:
    """The LID, or 0 for values outside the unicast range, such as 65535."""
    return lid if 0 < lid <= MAX_LID else 0
