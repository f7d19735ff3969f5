"""Two machines with one description, as after cloning a disk, are two machines everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.topology_generate import generate_topology
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text

TREE = load_fabric("xgft:2;3,2;1,2")
NAMES = [f"node0{n} mlx5_0" for n in (1, 2, 3, 1, 5, 6)]
"""The first and the fourth, which are on two leaves, have one."""
MARKS = [f"@{place}@" for place in range(len(NAMES))]


def text(names: list[str] = NAMES) -> str:
    found = ibnetdiscover_text(TREE)
    for old, mark in zip(TREE.terminal_description, MARKS, strict=True):
        found = found.replace(f'"{old}"', f'"{mark}"')
    for mark, new in zip(MARKS, names, strict=True):
        found = found.replace(mark, new)
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "fabric").write_text(text())
    (tmp_path / "queue").write_text("1|RUNNING|node[01-02]|p|u|a|2|2026-01-01T00:00:00|\n")
    (tmp_path / "topology.conf").write_text(
        "SwitchName=a Nodes=node[01-03]\nSwitchName=b Nodes=node[05-06]\n"
        "SwitchName=r Switches=a,b\n"
    )
    return tmp_path


def is_named(said: str) -> bool:
    guids = [f"0x{int(TREE.terminal_node_guid[t]):016x}" for t in (0, 3)]
    leaves = [TREE.switch_name[TREE.terminal_switch[t]] for t in (0, 3)]
    return all(word in said for word in ("node01 mlx5_0", *guids, *leaves))


def test_the_second_is_a_host_of_its_own() -> None:
    fabric = read_ibnetdiscover(text())
    assert [fabric.terminal_host[t] for t in fabric.hosts["node01"]] == ["node01"]
    assert f"H-{int(TREE.terminal_node_guid[3]):016x}" in fabric.hosts
    assert fabric.digest == TREE.digest
    [note] = fabric.notes
    assert is_named(note)


def test_two_hcas_of_one_machine_stay_one() -> None:
    two = read_ibnetdiscover(text([NAMES[0], "node01 mlx5_1", *NAMES[2:3], "x mlx5_0", *NAMES[4:]]))
    assert len(two.hosts["node01"]) == 2 and two.notes == ()


def test_every_command_names_them(site: Path) -> None:
    fabric, queue, conf = site / "fabric", site / "queue", site / "topology.conf"
    checked = sar_agent("topology", "check", "--fabric", fabric, "--topology-conf", conf)
    assert checked.returncode == 1 and is_named(checked.stdout + checked.stderr)
    made = sar_agent("topology", "generate", "--fabric", fabric, "--out", site / "new.conf")
    assert is_named(made.stderr) and "node01" in (site / "new.conf").read_text()
    same = ("--fabric", fabric, "--jobs", queue)
    routed = sar_agent("route", *same, "--engine", "minhop", "--out", site / "routes")
    assert is_named(routed.stderr) and "none of the 1 job" in routed.stderr
    usual = ("--no-simulate", "--engine", "minhop", "--out", site / "o")
    assessed = sar_agent("assess", *same, *usual)
    assert assessed.returncode == 0 and is_named(assessed.stdout + assessed.stderr)


def test_generated_topologies_leave_the_second_out() -> None:
    fabric = read_ibnetdiscover(text())
    nodes = [node for switch in generate_topology(fabric).switches for node in switch.nodes]
    assert sorted(nodes) == ["node01", "node02", "node03", "node05", "node06"]
