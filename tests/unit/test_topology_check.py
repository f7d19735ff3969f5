"""`compare_topology`: Slurm's leaves against the fabric's."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.slurm.topology_check import check_topology, compare_topology, nodes_elsewhere
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_reach import compare_reach

FABRIC = xgft_fabric("xgft:2;2,2;1,1")  # n001, n002 on S1-0; n003, n004 on S1-1
RIGHT = {"n001": "a", "n002": "a", "n003": "b", "n004": "b"}


def test_hosts_that_one_side_does_not_know() -> None:
    leaf_of = {host: leaf for host, leaf in RIGHT.items() if host != "n004"} | {"x": "a", "y": "b"}
    assert compare_topology(FABRIC, leaf_of) == [
        "2 hosts of Slurm's topology are not in the fabric: x, y",
        "1 host of the fabric is not in Slurm's topology: n004",
    ]


def test_host_on_another_leaf() -> None:
    assert compare_topology(FABRIC, RIGHT | {"n003": "a"}) == [
        'Slurm\'s leaf "a" is 2 switches in the fabric: n001 on "S1-0", n003 on "S1-1"',
        'switch "S1-1" is 2 leaves to Slurm: n003 under "a", n004 under "b"',
    ]


THREE = xgft_fabric("xgft:3;2,2,2;1,2,2")  # leaves of two hosts, islands of two leaves, a root
LEAVES = "".join(f"SwitchName=l{n} Nodes=n00{2 * n - 1},n00{2 * n}\n" for n in range(1, 5))


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ("i1=l[1-2] i2=l[3-4] r=i1,i2", ""),
        ("r=l[1-4]", ""),  # fewer levels
        ("r=l[1-4] r2=l[1-4]", ""),  # all spines
        ("r=r1,r2 r1=l[1-2] r2=l[3-4]", ""),  # parents before children
        (
            "i1=l[1,3] i2=l[2,4] r=i1,i2",
            'Slurm\'s "i1" holds n001 and n005, but not n003, which is nearer to n001',
        ),
        (
            "r1=l[1-2] r2=l[3-4]",
            "cables join n001 and n005, but Slurm's switches above them have no common root",
        ),
        ("", "no common root (4 trees)"),
    ],
)
def test_missing_and_needless_upper_switches_are_reported(
    tmp_path: Path, above: str, said: str
) -> None:
    lines = ["SwitchName=" + switch.replace("=", " Switches=") for switch in above.split()]
    (tmp_path / "topology.conf").write_text(LEAVES + "\n".join(lines) + "\n")
    found = compare_reach(THREE, read_topology_conf(tmp_path / "topology.conf"))
    assert said in (found[0] if found else "")
    assert bool(found) == bool(said)


def test_a_root_over_pieces(tmp_path: Path) -> None:
    top = [c for c in range(THREE.channels) if THREE.switch_name[THREE.channel_target[c]][1] == "3"]
    (tmp_path / "topology.conf").write_text(LEAVES + "SwitchName=r Switches=l[1-4]\n")
    topology = read_topology_conf(tmp_path / "topology.conf")
    assert compare_reach(THREE.with_links_down(top), topology) == [
        'Slurm\'s "r" joins n001 and n005, which no live cable joins'
    ]


def test_switches_of_another_network_and_blocks(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    blocks = "BlockName=a Nodes=n[001-002]\nBlockName=b Nodes=n[003-004]\n"
    path.write_text(blocks + "BlockName=web Nodes=web[1-2]\n")
    topology = read_topology_conf(path)
    assert nodes_elsewhere(FABRIC, topology) == {"web": ("web1", "web2")}
    assert check_topology(FABRIC, topology)
    assert not check_topology(FABRIC, topology, without={"web1", "web2"})
