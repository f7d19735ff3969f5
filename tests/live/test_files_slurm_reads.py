"""The installed slurmctld takes each topology.conf that we write, with the names that sites have.

scontrol then shows the same switches and nodes, and `topology check` of its output agrees.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import read_list, write_list
from sar_agent.slurm.topology_check import check_topology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import FORMS, topology_conf, topology_text
from sar_lab.live.process import find_program
from sar_lab.live.slurmctld_only import slurmctld_reads
from tests.worlds.named_fabrics import fabric_of

pytestmark = pytest.mark.live

DUMPS = ("dgx-ndr", "director-notabs", "psmn-x5", "selene-storage", "small-2014")


def hostnames(text: str, folder: Path) -> list[str]:
    """What `scontrol show hostnames` prints; it only needs any slurm.conf."""
    conf = folder / "slurm.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    command = ["scontrol", "show", "hostnames", text]
    done = subprocess.run(command, env={"SLURM_CONF": str(conf)}, capture_output=True, text=True)
    return list(dict.fromkeys(done.stdout.split("\n")[:-1]))


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
    assert not topology.problems
    assert {s.name: (set(s.nodes), set(s.children)) for s in topology.switches.values()} == {
        s.name: (set(s.nodes), set(s.children)) for s in tree.switches
    }
    differences = check_topology(fabric, topology)
    assert all("not in Slurm's topology" in one for one in differences), differences
    assert bool(differences) == bool(tree.notes)


@pytest.mark.parametrize("name", [*DUMPS, "xgft:3;4,4,4;1,2,2", "odd 0", "odd 1"])
def test_slurmctld_takes_blocks(name: str) -> None:
    """From 24.05 on; the blocks in its memory are the leaf switches with their nodes."""
    program = find_program("slurmctld", "slurm-wlm")
    said = subprocess.run([program, "-V"], capture_output=True, text=True).stdout
    major, minor = map(int, said.split()[-1].split(".")[:2])
    if (major, minor) < FORMS["block"][0]:
        pytest.skip(f"{said.strip()} has no topology/block")
    try:
        tree = generate_topology(fabric_of(name))
    except InputError as error:
        pytest.skip(str(error))
    leaves = {switch.name: set(switch.nodes) for switch in tree.switches if switch.nodes}
    text = topology_text([(name, tree)], "block", (major, minor))
    heard = slurmctld_reads(text, sorted(set().union(*leaves.values())), "block")
    assert not heard.refused
    assert not heard.complaints
    shown = re.findall(r"BlockName=(\S+) BlockIndex=\d+ Nodes=(\S+)", heard.shown)
    assert {block: set(read_list(nodes)[0]) for block, nodes in shown} == leaves


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
