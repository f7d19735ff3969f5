"""Slurm's topology.conf: what it means, and what can be wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.slurm.topology_conf import read_topology_conf
from tests.data import data_path
from tests.worlds.topology_texts import TREE


def write(folder: Path, text: str, name: str = "topology.conf") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_tree(tmp_path):
    topology = read_topology_conf(write(tmp_path, TREE))
    assert topology.leaves == ("leaf1", "leaf2")
    assert topology.leaf_of("n2") == {"leaf1"}
    assert topology.leaf_of("a-b02") == {"leaf2"}
    assert topology.leaf_of("other") == frozenset()
    assert topology.switches["mid"].children == ("leaf1", "leaf2")
    assert topology.switches["top"].children == ("mid",)
    assert topology.switches["top"].line == 6
    assert topology.problems == ()


@pytest.mark.parametrize("include", ["Include sub/leaves.conf", "INCLUDE  sub/leaves.conf"])
def test_includes_are_relative_to_the_including_file(tmp_path, include):
    (tmp_path / "sub").mkdir()
    write(tmp_path, f"{include}\nSwitchName=top Switches=leaf1,leaf2\n")
    write(tmp_path / "sub", "SwitchName=leaf1 Nodes=n1\ninclude more.conf\n", "leaves.conf")
    write(tmp_path / "sub", "SwitchName=leaf2 Nodes=n2\n", "more.conf")
    topology = read_topology_conf(tmp_path / "topology.conf")
    assert topology.leaves == ("leaf1", "leaf2")
    assert [file.name for file in topology.files] == ["topology.conf", "leaves.conf", "more.conf"]
    assert topology.switches["leaf2"].file.name == "more.conf"


LEAF = "SwitchName=a Nodes=n1\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (LEAF + "SwitchName=b Nodes=n[1-2]\n", 2, "node n1 is on two leaf switches, a and b"),
        (LEAF + "SwitchName=b Switches=a,c\n", 2, "switch b names c, which is not in the file"),
        (LEAF + "SwitchName=a Nodes=n2\n", 2, "switch a is named twice, first at .*:1"),
        (LEAF + "SwitchName=b Nodes=n2 Switches=a\n", 2, "both Nodes= and"),
        (
            LEAF + "SwitchName=b Switches=c\nSwitchName=c Switches=d\nSwitchName=d Switches=b,a\n",
            2,
            "cycle: b → c → d → b",
        ),
        (LEAF + "SwitchName=b Switches=b\n", 2, "cycle: b → b"),
    ],
)
def test_structural_problems(tmp_path, text, line, said):
    path = write(tmp_path, text)
    found = read_topology_conf(path)
    assert found.problems[0].startswith(f"{path}:{line}: ")
    assert re.search(said, found.problems[0])
    assert "a" in found.leaf_of("n1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Nodes=n1\n", ":1: no SwitchName="),
        ("\nSwitchName=a Nodes\n", ":2: 'Nodes' is not key=value"),
        ("SwitchName=a Nodes=n[1-\n", ":1: .*not a Slurm host list"),
        ("SwitchName=a Nodes=n1 Speed=3\n", ":1: Speed= is not a key"),
        ("BlockName=a Nodes=n1\n", ":1: BlockName= is not a key of a tree"),
        ("include topology.conf\n", ":1: files include each other: topology.conf → topology"),
        ("include none.conf\n", "none.conf: cannot be read .No such file"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=said):
        read_topology_conf(path)


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("SwitchName=b Nodes=n[2-3],,n4,", "n2 n3 n4"),  # empty items
        ('SwitchName=b Nodes="n2, n3"', "n2 n3"),  # blanks inside quotes
        ("SwitchName=b Nodes=n2,\\\nn3", "n2 n3"),  # continued inside a value
        ("SwitchName=b Nodes=x nodes=n2", "n2"),  # the last of two
        ("  SwitchName = b Nodes= n2", "n2"),
        ("SwitchName=b Nodes=n\\[2-3]", "n2 n3"),  # an escape
        ("SwitchName=b Nodes=n2 # n3 \\", "n2"),  # a comment is not continued
        ("SwitchName=b Nodes=x;y:z/1", "x;y:z/1"),
        ("SwitchName=b Nodes=x" + "9" * 21, "x018446744073709551615"),  # 64 bits
        ("SwitchName=b Level=0 LinkSpeed=1 Nodes=n2, n3", "n2 n3"),  # scontrol prints no quotes
    ],
)
def test_lines_that_slurmctld_reads(tmp_path, line, nodes):
    """Each line was given to slurmctld 22.05.8, and `scontrol show topology` compared."""
    topology = read_topology_conf(write(tmp_path, f"{LEAF}{line}\n"))
    assert topology.switches["b"].nodes == tuple(nodes.split())
    assert not topology.problems


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("SwitchName=b Nodes=n2 Speed=3", ":2: Speed= is not a key"),
        ("junk", ":2: 'junk' is not key=value"),
        ("SwitchName=b Nodes=n[1-", ":2: .*not a Slurm host list"),
        ("SwitchName=b Nodes=n[1,]", ":2: .*not a range"),
        ("Include=other.conf", ":2: Slurm takes no Include="),
    ],
)
def test_a_bad_line_does_not_refuse_the_rest(tmp_path, line, said):
    write(tmp_path, "", "other.conf")
    path = write(tmp_path, f"{LEAF}{line}\nSwitchName=c Nodes=n9\n")
    topology = read_topology_conf(path)
    assert topology.leaves == ("a", "c")
    assert re.search(said, topology.problems[0]), topology.problems


@pytest.mark.parametrize(
    ("line", "said", "by_22_05", "by_25_05"),
    [
        ("SwitchName=b Nodes=n[2-3]-x", "before 23.11 does not take text behind", True, False),
        ("SwitchName=b", "before 25.05 takes no switch with neither", True, False),
        (f"SwitchName={'b' * 65} Nodes=n2", "from 24.05 takes no name longer than", False, True),
    ],
)
def test_lines_that_some_versions_refuse(tmp_path, line, said, by_22_05, by_25_05):
    (refusal,) = read_topology_conf(write(tmp_path, f"{LEAF}{line}\n")).refusals
    assert f":2: Slurm {said}" in str(refusal)
    assert refusal.by(None)
    assert (refusal.by((22, 5)), refusal.by((25, 5))) == (by_22_05, by_25_05)


@pytest.mark.data
def test_a_real_cyclic_file():
    path = data_path("psmn-x5.topology.conf")
    topology = read_topology_conf(path)
    assert len(topology.problems) == 2
    cycle = r":4: .*cycle: S-0008f105001086a2 → S-0008f10500108530 → S-0008f105001086a2"
    assert re.search(cycle, topology.problems[0])
    assert len(topology.leaves_of) == 89
    assert topology.leaf_of("sl390lin101") == {"S-0008f105002036b4"}
