"""Whatever the fabric: writing and reading it back, cutting files, reordering nodes."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.errors import InputError
from sar_agent.fabric.db_csv import read_db_csv
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids, read_ibsim_net, write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import NodeRecord
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst
from sar_agent.fabric.xgft import xgft_fabric
from tests.examples import examples
from tests.worlds.db_csv_text import tables_of_nodes, written
from tests.worlds.dump_styles import styled
from tests.worlds.fabric_texts import SMALL, differences, ibnetdiscover_text
from tests.worlds.fabrics import FABRICS, fabric_of, records


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
