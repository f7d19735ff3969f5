"""Whatever the fabric: writing and reading it back, cutting files, reordering nodes. The plugin's
file gives the fabric that ibnetdiscover would give; a damaged one a fabric or one sentence."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.db_csv import read_db_csv
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids, read_ibsim_net, write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord
from sar_agent.fabric.opensm_file import decode_opensm_fabric
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst
from sar_agent.fabric.xgft import xgft_fabric
from tests.examples import examples
from tests.worlds.db_csv_text import tables_of_nodes, written
from tests.worlds.fabric_texts import SMALL, differences, ibnetdiscover_text, in_order_of_guids
from tests.worlds.fabrics import FABRICS, fabric_of, records
from tests.worlds.opensm_files import HEADER, image_of_records, image_of_text, known_rate, sealed

_PORT = re.compile(r"(\[\d+\])((?:\([0-9a-f]+\))?)(.*)")
_NOISE = (
    "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1)",
    "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; timed out",
    "[root@mgmt ~]# ",
    "Chassis 1 (guid 0x2c9020042a1b0)",
    "Non-Chassis Nodes",
    "# a remark",
)


@st.composite
def styled(draw: st.DrawFn, text: str) -> str:
    """The same dump as another program, another age or a terminal shows it."""
    labels, full, external, grouped = (draw(st.booleans()) for _ in range(4))
    lines = []
    for line in text.split("\n"):
        if port := _PORT.fullmatch(line):
            number, guid, rest = port.groups()
            if external and not guid:
                number += f"[ext {draw(st.integers(1, 144))}]"
            if labels:
                number += "(B1D0F0/0/0/1)" if guid else f"({draw(st.integers(1, 64))}/1)"
            line = number + guid + rest
            if full:
                line += f" s={draw(st.integers(1, 9))} w=2 v=4"
        elif grouped and line.startswith("switchguid="):
            line += "\t# Line 4 Chip 1"
        if line and draw(st.integers(0, 9)) == 0:
            lines.append(draw(st.sampled_from(_NOISE)))
        lines.append(line)
    text = "\n".join(lines)
    if draw(st.booleans()):
        text = re.sub(r"\t+", lambda tabs: " " * (4 * len(tabs[0])), text)
    if draw(st.booleans()):
        text = re.sub(r"^(?=.)", " " * draw(st.integers(1, 8)), text, flags=re.MULTILINE)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text


@examples()
@given(FABRICS)
def test_ibsim_net_round_trip(fabric: Fabric) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net")
        write_ibsim_net(fabric, path)
        assert differences(read_ibsim_net(path.read_text()), fabric) == []
        assert load_fabric(path).digest == fabric.digest
        assert max(map(len, path.read_bytes().split(b"\n"))) < 255


@examples()
@given(FABRICS)
def test_net_ids_are_legal_and_name_one_node(fabric: Fabric) -> None:
    switches, terminals = net_ids(fabric)
    assert len(set(switches)) == fabric.switches
    assert not set(switches) & set(terminals)
    for ident in switches + terminals:
        assert re.fullmatch(r'[^\s"#@=\[\]]{1,64}', ident)
    node_of: dict[str, int] = {}
    for ident, guid in zip(terminals, fabric.terminal_node_guid.tolist(), strict=True):
        assert node_of.setdefault(ident, guid) == guid


@examples()
@given(FABRICS, st.integers(0, 3))
def test_subnet_lst_round_trip(fabric: Fabric, lmc: int) -> None:
    lids = assign_lids(fabric, lmc)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "subnet.lst")
        write_subnet_lst(fabric, lids, path)
        back = read_subnet_lst(path.read_text())
    assert back.digest == fabric.digest
    by_guid = dict(zip(fabric.terminal_guid.tolist(), lids[1].tolist(), strict=True))
    assert [by_guid[guid] for guid in back.terminal_guid.tolist()] == back.terminal_lid.tolist()
    assert sorted(back.switch_lid.tolist()) == sorted(lids[0].tolist())


@examples()
@given(records())
def test_db_csv_has_the_same_fabric(nodes: list[NodeRecord]) -> None:
    """Of nodes by GUID, with speeds that have a bit, and descriptions of one line."""
    ids = {node.id: f"{node.kind}-{node.guid:016x}" for node in nodes}
    for node in nodes:
        node.id = ids[node.id]
        node.description = re.sub(r"[\0\r\n\x1b\ufeff]", " ", node.description)
        node.ends = [
            end._replace(peer=ids[end.peer], rate=100.0 if end.rate == 123.0 else end.rate)
            for end in node.ends
        ]
    fabric = read_db_csv(written(tables_of_nodes(nodes), escape=True))
    assert differences(fabric, fabric_of(nodes)) == []


@examples()
@given(FABRICS, st.integers(0, 7))
def test_lids_are_valid(fabric: Fabric, lmc: int) -> None:
    switches, terminals = assign_lids(fabric, lmc)
    assert not (terminals % (1 << lmc)).any()
    ranges = (terminals[:, None] + np.arange(1 << lmc)).ravel()
    everything = np.concatenate([switches, ranges])
    assert len(np.unique(everything)) == len(everything)
    assert everything.min() >= 1
    assert everything.max() <= 0xBFFF


@examples()
@given(st.data())
def test_order_of_nodes_is_no_part_of_the_digest(data: st.DataObject) -> None:
    nodes: list[NodeRecord] = data.draw(records())
    fabric, other = fabric_of(nodes), fabric_of(data.draw(st.permutations(nodes)))
    assert other.digest == fabric.digest
    rails = [
        dict(zip(f.terminal_guid.tolist(), f.terminal_rail.tolist(), strict=True))
        for f in (fabric, other)
    ]
    assert rails[0] == rails[1]


TREE = xgft_fabric("xgft:3;3,2,2;1,2,2")
TEXTS = [SMALL, ibnetdiscover_text(TREE)]
WHOLE = [read_ibnetdiscover(text) for text in TEXTS]


@examples()
@given(st.integers(0, 1), st.data())
def test_cut_anywhere(which: int, data: st.DataObject) -> None:
    """A cut file is refused in one sentence, or nothing that matters was lost."""
    text = TEXTS[which]
    end = data.draw(st.integers(0, len(text)))
    if data.draw(st.booleans()):
        end = text.rfind("\n", 0, end) + 1
    try:
        fabric = read_ibnetdiscover(text[:end] + "\n", name="cut")
    except InputError as error:
        assert str(error).startswith("cut:")
        assert "\n" not in str(error)
    else:
        assert differences(fabric, WHOLE[which]) in ([], ["lmc"])


@examples()
@given(st.integers(0, 1), st.data())
def test_a_dump_in_any_spelling(which: int, data: st.DataObject) -> None:
    """Port labels, external ports, speeds in full, chassis, noise of umad, prompts, indents."""
    fabric = parse_fabric(data.draw(styled(TEXTS[which])), "styled")
    assert differences(fabric, WHOLE[which]) == []


IMAGE = image_of_text(SMALL)
COUNTS = HEADER.unpack(IMAGE[: HEADER.size])[4:8]


def as_printed(node: NodeRecord) -> NodeRecord:
    """As ibnetdiscover would print it: 63 bytes, blanks for what is not printable ASCII; rates
    that no link has are unreadable."""
    raw = node.description.encode()[:63].split(b"\0")[0]
    words = "".join(chr(c) if 32 <= c < 127 else " " for c in raw)
    return replace(
        node,
        description=words or (f"S-{node.guid:016x}" if node.kind == "S" else ""),
        ends=[e._replace(rate=e.rate if known_rate(e.rate)[0] else None) for e in node.ends],
    )


@examples()
@given(records().filter(lambda nodes: any(node.kind == "H" for node in nodes)))
def test_it_is_the_fabric_of_the_records(nodes: list[NodeRecord]) -> None:
    nodes = [replace(n, description=n.description.replace("\0", "")) for n in nodes]
    ours = decode_opensm_fabric(image_of_records(nodes)).fabric
    theirs = assemble("records", [as_printed(node) for node in nodes], None)
    assert differences(in_order_of_guids(ours), in_order_of_guids(theirs)) == []


EDITS = st.lists(
    st.tuples(st.integers(0, len(IMAGE) - 1), st.integers(0, 255)), min_size=1, max_size=8
)


@examples(500)
@given(EDITS, st.integers(0, len(IMAGE)), st.booleans())
def test_a_mutated_file_is_a_fabric_or_one_sentence(
    edits: list[tuple[int, int]], end: int, seal: bool
) -> None:
    """Half of them with right checksums, so that each rule behind them meets odd values."""
    image = bytearray(IMAGE)
    for at, value in edits:
        image[at] = value
    mutated = sealed(bytes(image[HEADER.size :]), COUNTS) if seal else bytes(image[:end])
    try:
        fabric, _ = decode_opensm_fabric(mutated)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert fabric.switches and len(fabric.digest) == 32


@examples(300)
@given(st.binary(max_size=200), st.tuples(*[st.integers(0, 9)] * 4), st.booleans())
def test_any_bytes(payload: bytes, counts: tuple[int, int, int, int], seal: bool) -> None:
    try:
        decode_opensm_fabric(sealed(payload, counts) if seal else payload)
    except InputError as error:
        assert "\n" not in str(error)
