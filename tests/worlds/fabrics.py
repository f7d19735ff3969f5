"""Random fabrics as node records, the way readers see them."""

from __future__ import annotations

from hypothesis import strategies as st

from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord, PortRecord
from sar_agent.fabric.rates import LANE_RATE

PORTS = 12
RATES = [4 * rate for rate in LANE_RATE.values()] + [2.0, 50.0, 600.0, 123.0]
NAMES = st.one_of(
    st.sampled_from(
        [
            "n1 HCA-1", "n1 HCA-2", "n1 mlx5_10", "n2", "n2.site.org mlx5_0", "S1-0", "MF0;a:B/U1",
            "MT25408 ConnectX Mellanox Technologies", "Mellanox Technologies Aggregation Node", "",
            'quoted "x"', "a # b lid 5 lmc 1 w=4", "{n1} LID:0001 PN:01 }", " lead", "two\nlines",
            "S-0000000000100000", "n" * 70, "\u00fcmlaut \u2028 \x85",
        ]
    ),
    st.text(max_size=30),
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> list[NodeRecord]:
    """Switches in one piece with extra, perhaps parallel, cables; HCAs of one or two ports.

    Some cables are down or slow, names are odd and repeat, port GUIDs do or do not follow the
    node's, LIDs are there or not.
    """
    # Four apart, as vendors do: a node's GUID plus a port's number is no other node's.
    drawn = st.lists(st.integers(1 << 18, (1 << 61) - 1), min_size=60, max_size=60, unique=True)
    guids = [4 * guid for guid in draw(drawn)]
    count = draw(st.integers(1, 5))
    lids = iter(draw(st.permutations(range(60))))
    known = draw(st.booleans())
    switches = [
        NodeRecord("S", f"s{i}", PORTS, guids.pop(), draw(NAMES), next(lids) * known, i)
        for i in range(count)
    ]
    free = {switch.id: list(range(1, PORTS + 1)) for switch in switches}

    def plug(a: NodeRecord, b: NodeRecord, a_port: int, b_port: int, guid: int = 0) -> None:
        up, rate = draw(st.booleans()) or draw(st.booleans()), draw(st.sampled_from(RATES))
        lid = next(lids) * known if a.kind != "S" else 0
        a.ends.append(PortRecord(a_port, guid, lid, 0, b.id, b_port, 0, 0, rate, up, 0))
        b.ends.append(PortRecord(b_port, 0, 0, 0, a.id, a_port, guid, lid, rate, up, 0))

    def port_of(switch: NodeRecord) -> int:
        return free[switch.id].pop(draw(st.integers(0, len(free[switch.id]) - 1)))

    pairs = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
    if count > 1:
        several = st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True)
        pairs += [(a, b) for a, b in draw(st.lists(several, max_size=6))]
    for i, j in pairs:
        a, b = switches[i], switches[j]
        if len(free[a.id]) > 5 and len(free[b.id]) > 5:
            plug(a, b, port_of(a), port_of(b))
    adapters = []
    for index in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from("HHHR"))
        node = NodeRecord(kind, f"h{index}", 2, guids.pop(), draw(NAMES), 0, 100 + index)
        style = draw(st.sampled_from(["node's own", "following", "unrelated"]))
        for port in draw(st.sampled_from([[1], [2], [1, 2]])):
            open_ = [switch for switch in switches if free[switch.id]]
            if not open_:
                break
            switch = draw(st.sampled_from(open_))
            guid = node.guid if style == "node's own" else node.guid + port
            if style == "unrelated" or (style == "node's own" and node.ends):
                guid = guids.pop()
            plug(node, switch, port, port_of(switch), guid)
        if node.ends:
            adapters.append(node)
    everyone: list[NodeRecord] = draw(st.permutations(switches + adapters))
    return everyone


def fabric_of(nodes: list[NodeRecord]) -> Fabric:
    """The fabric of these records."""
    return assemble("random", nodes, None)


FABRICS = records().map(fabric_of)
