"""topology.yaml as Slurm 25.05 takes it, and which of the two files counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.slurm.topology_files import read_topology, topology_in_use
from sar_agent.slurm.topology_watch import TopologyWatcher
from sar_agent.slurm.topology_yaml import read_topology_yaml
from tests.worlds.topology_texts import MANUAL


def write(folder: Path, text: str) -> Path:
    path = folder / "topology.yaml"
    path.write_text(text)
    return path


def test_the_default_tree_counts(tmp_path: Path) -> None:
    found = read_topology_yaml(write(tmp_path, MANUAL))
    assert found.leaves == ("s1", "s2") and not found.problems
    assert found.leaf_of("node03") == {"s2"} and not found.leaf_of("other01")
    assert found.switches["sw_root"].children == ("s1", "s2")
    assert found.switches["s2"].line == MANUAL.splitlines().index("        nodes: node[03-04]")


TREE = "- topology: t\n  tree:\n    switches:\n"


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
        (TREE + "      - nodes: n1\n", 4, "a switch has no `switch:` name"),
        (TREE + "      - switch: a\n        nodes: n[1-\n", 5, "'n[1-' is not a Slurm host list"),
        (TREE + "      - switch: a\n        nodes: [n1]\n", 5, "a word or a number is required"),
    ],
)
def test_errors_name_their_place(tmp_path: Path, text: str, line: int | None, said: str) -> None:
    path = write(tmp_path, text)
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
    path = write(tmp_path, TREE + switches)
    problem = read_topology_yaml(path).problems[0]
    assert problem.startswith(f"{path}:{line}: ") and said in problem


def test_a_bad_entry_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    text = (
        TREE + "      - switch: a\n        nodes: n[1-\n      - {switch: b, nodes: n2}\n      - 7\n"
    )
    path = write(tmp_path, text)
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
    path = write(tmp_path, MANUAL)
    assert topology_in_use(conf) == path
    assert watcher.changed() and watcher.topology.leaves == ("s1", "s2")
    path.unlink()
    assert watcher.changed() and watcher.topology.leaves == ("old",)
    assert read_topology(conf).leaves == ("old",)
