"""Slurm's topology.conf, and topology.yaml as Slurm 25.05 takes it: what they mean, what can be
wrong with them, and which of the two counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_files import read_topology, topology_in_use
from sar_agent.slurm.topology_watch import TopologyWatcher
from sar_agent.slurm.topology_yaml import read_topology_yaml
from tests.data import data_path
from tests.worlds.topology_texts import MANUAL, TREE


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
        ("SwitchName=a BlockName=a Nodes=n1\n", ":1: SwitchName= and BlockName= in one line"),
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


def test_the_default_tree_counts(tmp_path: Path) -> None:
    found = read_topology_yaml(write(tmp_path, MANUAL, "topology.yaml"))
    assert found.leaves == ("s1", "s2") and not found.problems
    assert found.leaf_of("node03") == {"s2"} and not found.leaf_of("other01")
    assert found.switches["sw_root"].children == ("s1", "s2")
    assert found.switches["s2"].line == MANUAL.splitlines().index("        nodes: node[03-04]")


HEAD = "- topology: t\n  tree:\n    switches:\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("- topology: t\n  flat: true\n", 1, "no topology in it is a tree"),
        (
            "- topology: gb\n  block: {block_sizes: [4], blocks: [{block: b1, nodes: n1}]}\n"
            "- topology: r\n  ring: {rings: [{ring: r0, nodes: 'n[01-08]'}]}\n"
            "- topology: pod\n  torus3d: {toruses: [{name: p, dims: {x: 2, y: 2, z: 2}}]}\n"
            "- topology: f\n  flat: {alpha_step_rank: true}\n- topology: new\n  mesh: {}\n",
            1,
            "no topology in it is a tree (gb is block, r is ring, pod is torus3d, f is flat, "
            "new is of an unknown kind), so it names no leaf switches",
        ),
        ("a: [1, 2\n", None, "is not YAML"),
        ("", None, "a list of topologies: a list is required"),
        ("topology: t\n", 1, "a list of topologies: a list is required"),
        (HEAD + "      - nodes: n1\n", 4, "a switch has no `switch:` name"),
        (
            HEAD + "      - switch: a\n        nodes: n[1-\n",
            5,
            "'n[1-' is not a Slurm host list",
        ),
        (
            HEAD + "      - switch: a\n        nodes: [n1]\n",
            5,
            "a word or a number is required",
        ),
    ],
)
def test_errors_name_their_place(tmp_path: Path, text: str, line: int | None, said: str) -> None:
    path = write(tmp_path, text, "topology.yaml")
    with pytest.raises(InputError) as caught:
        read_topology_yaml(path)
    assert said in str(caught.value)
    assert caught.value.file == path
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("switches", "line", "said"),
    [
        ("      - {switch: a, nodes: n1, children: b}\n", 4, "both nodes and children"),
        ("      - {switch: a, children: b}\n", 4, "names b, which is not in the file"),
        (2 * "      - {switch: a, nodes: n1}\n", 5, "switch a is named twice, first at"),
    ],
)
def test_problems_name_their_place(tmp_path: Path, switches: str, line: int, said: str) -> None:
    path = write(tmp_path, HEAD + switches, "topology.yaml")
    problem = read_topology_yaml(path).problems[0]
    assert problem.startswith(f"{path}:{line}: ") and said in problem


def test_a_bad_entry_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    text = (
        HEAD + "      - switch: a\n        nodes: n[1-\n      - {switch: b, nodes: n2}\n      - 7\n"
    )
    path = write(tmp_path, text, "topology.yaml")
    found = read_topology_yaml(path)
    assert found.leaf_of("n2") == {"b"}
    assert found.problems[0].startswith(f"{path}:5: 'n[1-' is not a Slurm host list")
    assert found.problems[1].startswith(f"{path}:7: keys with values are required")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(No such file"):
        read_topology_yaml(tmp_path / "topology.yaml")


def test_slurm_goes_by_the_yaml_file_as_soon_as_there_is_one(tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=old Nodes=n1\n")
    assert topology_in_use(conf) == conf
    watcher = TopologyWatcher(conf)
    assert watcher.topology and watcher.topology.leaves == ("old",)
    path = write(tmp_path, MANUAL, "topology.yaml")
    assert topology_in_use(conf) == path
    assert watcher.changed() and watcher.topology.leaves == ("s1", "s2")
    path.unlink()
    assert watcher.changed() and watcher.topology.leaves == ("old",)
    assert read_topology(conf).leaves == ("old",)


@pytest.mark.parametrize("speed", ["1", "010", "0x64", "4294967295", "infinite", "UNLIMITED", '""'])
def test_link_speeds_that_slurmctld_takes(tmp_path, speed):
    path = write(tmp_path, f"SwitchName=a Nodes=n1 LinkSpeed={speed}\n")
    assert not read_topology_conf(path).problems


@pytest.mark.parametrize("speed", ["100G", "HDR", "100.5", "-1", "''", "08", "4294967296"])
def test_link_speeds_at_which_slurmctld_stops(tmp_path, speed):
    path = write(tmp_path, f"SwitchName=a Nodes=n1 LinkSpeed={speed}\n")
    assert f"{path}:1: slurmctld stops at LinkSpeed=" in read_topology_conf(path).problems[0]


def test_blocks_are_read_as_leaves(tmp_path):
    text = "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n3\nBlockSizes=2\n"
    topology = read_topology_conf(write(tmp_path, text))
    assert not topology.problems
    assert {name: s.nodes for name, s in topology.switches.items()} == {
        "a": ("n1", "n2"),
        "b": ("n3",),
    }
