"""Slurm's topology from the fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.topology_check import check_topology
from sar_agent.slurm.topology_files import read_topology
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import topology_conf, topology_text, topology_yaml
from tests.data import data_path
from tests.worlds.fabric_texts import SMALL

FORMS = {"topology.conf": topology_conf, "topology.yaml": topology_yaml}


def lines(fabric: Fabric) -> list[str]:
    text = topology_conf([("here", generate_topology(fabric))])
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_pieces_without_a_link_have_a_root_each() -> None:
    whole = load_fabric("xgft:3;2,2,2;1,2,2")
    top = [c for c in range(whole.channels) if whole.switch_name[whole.channel_target[c]][1] == "3"]
    assert lines(whole.with_links_down(top))[4:] == [
        "SwitchName=root1 Switches=S1-[0-1]",
        "SwitchName=root2 Switches=S1-[2-3]",
    ]


def test_names_that_slurm_does_not_take() -> None:
    builder = FabricBuilder("odd")
    for index, name in enumerate(["MF0;sw-1:IS5600/L01", "twin", "twin"]):
        builder.add_switch(0x10 + index, name, 36)
        builder.add_terminal(0x100 + index, f"n{index} HCA-1", f"n{index}", index, 1)
    builder.add_link(0, 2, 1, 2)
    builder.add_link(0, 3, 2, 2)
    assert lines(builder.build()) == [
        "SwitchName=MF0_sw-1_IS5600_L01 Nodes=n0",
        "SwitchName=S-0000000000000011 Nodes=n1",
        "SwitchName=S-0000000000000012 Nodes=n2",
        "SwitchName=root Switches=MF0_sw-1_IS5600_L01,S-[0000000000000011-0000000000000012]",
    ]


def test_omissions_are_reported() -> None:
    fabric = load_fabric("xgft:2;2,2;1,1").with_links_down([], [0])
    tree = generate_topology(fabric)
    assert tree.notes == ("1 without a live link: n001",)
    assert "# Left out: 1 without a live link: n001\n" in topology_conf([("here", tree)])
    stored = read_ibnetdiscover(SMALL, mapper=HostMapper(storage_hosts=("*",)))
    with pytest.raises(InputError, match="no compute host is left: it has none"):
        generate_topology(stored)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name",
    ["xgft:2;18,36;1,18", "xgft:3;4,4,4;1,2,2", "dgx-ndr", "small-2014", "selene-storage",
     "director-notabs"],
)  # fmt: skip
def test_the_file_agrees_with_the_fabric(tmp_path: Path, name: str, form: str) -> None:
    fabric = load_fabric(name if ":" in name else data_path(f"{name}.ibnetdiscover"))
    tree = generate_topology(fabric)
    path = tmp_path / form
    path.write_text(FORMS[form]([(name, tree)]))
    found = read_topology(path)
    assert not found.problems
    differences = check_topology(fabric, found)
    assert all("not in Slurm's topology" in one for one in differences) and len(differences) <= 1
    assert bool(differences) == bool(tree.notes)
    children = [child for switch in found.switches.values() for child in switch.children]
    assert len(children) == len(set(children)), "a tree: one parent each"
    assert len(found.switches) - len(children) == 1, "one root"


def test_blocks_are_leaf_switches_in_the_order_of_islands() -> None:
    """As topology/block of Slurm 24.11 reads them: sizes are the least block and its doubles."""
    tree = [("here", generate_topology(load_fabric("xgft:3;3,2,2;1,2,2")))]
    assert topology_text(tree, "block", (24, 11)).splitlines()[1:] == [
        "BlockSizes=3,6,12",
        "BlockName=S1-0 Nodes=n[001-003]",
        "BlockName=S1-1 Nodes=n[004-006]",
        "BlockName=S1-2 Nodes=n[007-009]",
        "BlockName=S1-3 Nodes=n[010-012]",
    ]


@pytest.mark.parametrize("form", ["yaml", "block"])
def test_a_form_that_this_slurm_does_not_read(form: str) -> None:
    with pytest.raises(InputError, match=r"Slurm 22\.05 reads no --form"):
        topology_text([("here", generate_topology(load_fabric("xgft:1;4;1")))], form, (22, 5))


def test_two_fabrics_have_a_tree_each(tmp_path: Path) -> None:
    named = [(spec, generate_topology(load_fabric(spec))) for spec in ("xgft:2;2,2;1,2",) * 2]
    (tmp_path / "topology.yaml").write_text(topology_yaml(named))
    for tree in ("fabric", "fabric2"):
        assert len(read_topology(tmp_path / "topology.yaml", tree=tree).leaves) == 2
    with pytest.raises(InputError, match="no tree in it is x; its trees are fabric, fabric2"):
        read_topology(tmp_path / "topology.yaml", tree="x")
    with pytest.raises(InputError, match="some hosts are in several of the fabrics"):
        topology_text(named, "conf", None)
