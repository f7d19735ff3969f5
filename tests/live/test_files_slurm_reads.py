"""The installed slurmctld takes each topology.conf that we write, with the names that sites have.

scontrol then shows the same switches and nodes, and `topology check` of its output agrees.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.conf_lists import read_list, write_list
from sar_agent.slurm.topology_check import check_topology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import topology_conf
from sar_lab.live.process import find_program
from sar_lab.live.slurmctld_only import slurmctld_reads
from tests.data import data_path

pytestmark = pytest.mark.live

DUMPS = ("dgx-ndr", "director-notabs", "psmn-x5", "selene-storage", "small-2014")
SWITCHES = (
    "MF0;isw-r1:MQM8700/U1", "MF0;isw-r2:MQM8700/U1", "leaf 1 # a \\", 'the "quoted" one',
    "a,b[1-2]", "0c42a103007a1e0a", "0x0c42a103007a1e0b", "9" * 21, "LEAF7", "leaf7", "root",
    "island1", "s" * 90, "Nodes=n1", "SwitchName=x", "é", "twin", "twin", "sw.example.org", "12",
    "13", "x1-9", "-", "x[", "y portguid 0x0000000000000001: 'z')",
    "z guid 0x0000000000000002 (y):", "7 valid lids dumped", "{ SW Ports:24 }",
)  # fmt: skip
HOSTS = (
    "cn{:02d}b", "cn{:02d}B", "r1-n{}-gpu", "n{:04d}", "n{}", "N{}", "a.b.c-{}", "0c42a1030{:x}",
    "x" + "1" * 18 + "{:03d}", "{:02d}", "q_{}.x", "node-{}x{}",
)  # fmt: skip


def odd_names(seed: int) -> Fabric:
    """Leaf switches with odd descriptions under two spines, and hosts with odd names."""
    choice = random.Random(seed)
    builder = FabricBuilder("odd names")
    leaves = choice.sample(SWITCHES, 12)
    spines = [builder.add_switch(0x10 + n, name, 40) for n, name in enumerate(("root", "x y"))]
    used: set[str] = set()
    for place, name in enumerate(leaves):
        leaf = builder.add_switch(0x100 + place, name, 40)
        for port, spine in enumerate(spines, 30):
            builder.add_link(leaf, port, spine, place + 1)
        for port in range(1, 9):
            host = choice.choice(HOSTS).format(choice.randrange(120), choice.randrange(9))
            if host not in used:
                used.add(host)
                builder.add_terminal(0x1000 + len(used), host, host, leaf, port)
    return builder.build()


def hostnames(text: str, folder: Path) -> list[str]:
    """What `scontrol show hostnames` prints; it only needs any slurm.conf."""
    conf = folder / "slurm.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    command = ["scontrol", "show", "hostnames", text]
    done = subprocess.run(command, env={"SLURM_CONF": str(conf)}, capture_output=True, text=True)
    return list(dict.fromkeys(done.stdout.split("\n")[:-1]))


def fabric_of(name: str) -> Fabric:
    if name.startswith("odd"):
        return odd_names(int(name.split()[1]))
    return load_fabric(name if ":" in name else data_path(f"{name}.ibnetdiscover"))


@pytest.mark.parametrize(
    "name", [*DUMPS, "xgft:3;4,4,4;1,2,2", "torus:4x4,hosts=2", *(f"odd {n}" for n in range(12))]
)
def test_slurmctld_takes_what_generate_writes(name: str, tmp_path: Path) -> None:
    fabric = fabric_of(name)
    try:
        tree = generate_topology(fabric)
    except InputError as error:
        assert "without a host's name" in str(error)
        pytest.skip(str(error))
    nodes = [host for switch in tree.switches for host in switch.nodes]
    heard = slurmctld_reads(topology_conf([(name, tree)]), nodes)
    assert not heard.refused
    assert not [line for line in heard.complaints if "rror" in line], heard.complaints
    shown = tmp_path / "shown"
    shown.write_text(heard.shown)
    topology = read_topology_conf(shown)
    assert {s.name: (set(s.nodes), set(s.children)) for s in topology.switches.values()} == {
        s.name: (set(s.nodes), set(s.children)) for s in tree.switches
    }
    differences = check_topology(fabric, topology)
    assert all("not in Slurm's topology" in one for one in differences), differences
    assert bool(differences) == bool(tree.notes)


@pytest.mark.parametrize("seed", range(4))
def test_scontrol_reads_lists_as_we_do(seed: int, tmp_path: Path) -> None:
    find_program("scontrol", "slurm-wlm")
    choice = random.Random(seed)
    pieces = ["n", "a", ",", " ", "-", "0", "1", "9", "10", "[1-2]", "[01-3,7]", "S", ".", "_", ";"]
    for _ in range(40):
        text = "z" + "".join(choice.choice(pieces) for _ in range(choice.randint(1, 9)))
        names, suffixed = read_list(text)  # a list that begins with - is an option of scontrol
        if not suffixed and not any(name.startswith("-") for name in names):
            assert sorted(hostnames(text, tmp_path)) == sorted(names), text
            assert sorted(hostnames(write_list(names), tmp_path)) == sorted(names)
