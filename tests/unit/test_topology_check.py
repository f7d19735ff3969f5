"""`compare_topology`: Slurm's leaves against the fabric's."""

from __future__ import annotations

from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.slurm.topology_check import compare_topology
from tests.fabric_texts import SMALL

FABRIC = xgft_fabric("xgft:2;2,2;1,1")  # n001, n002 on S1-0; n003, n004 on S1-1
RIGHT = {"n001": "a", "n002": "a", "n003": "b", "n004": "b"}


def test_agreement() -> None:
    assert compare_topology(FABRIC, RIGHT) == []


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


def test_storage_is_not_expected_in_slurm() -> None:
    fabric = read_ibnetdiscover(SMALL, HostMapper(storage_hosts=("n001",)))
    assert compare_topology(fabric, {"H-00000000000a0030": "a"}) == []
