"""Forms of lines of topology.conf: the real slurmctld and `topology check` are given each. They
agree whether it can be read and, where it can, which nodes each leaf switch has.

A form is refused by slurmctld if it stops, or logs an error about the topology other than that
nodes are on no switch, which `check` finds by the fabric.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_lab.live.process import find_program
from tests.worlds.live.slurmctld_only import slurmctld_reads

pytestmark = pytest.mark.live

NODES = [f"n{i}" for i in range(1, 5)] + ["n01", "n02", "N5", "gpu-a", "r1i0n1", "r1i0n2"]
ROOT = "SwitchName=root Switches=a,b"
REST = "SwitchName=b Nodes=n3"
FORMS = (
    # host lists
    "SwitchName=a Nodes=n1,n2",
    "SwitchName=a Nodes=n[1-2]",
    "SwitchName=a Nodes=n[1,2]",
    "SwitchName=a Nodes=n[1-2,4]",
    "SwitchName=a Nodes=n[01-02]",
    "SwitchName=a Nodes=n[1-2],gpu-a",
    "SwitchName=a Nodes=gpu-a,N5",
    "SwitchName=a Nodes=r1i0n[1-2]",
    "SwitchName=a Nodes=r[1]i[0]n[1-2]",
    "SwitchName=a Nodes=r1i[0]n[1-2]",
    "SwitchName=a Nodes=n[1]",
    "SwitchName=a Nodes=n1,,n2",
    "SwitchName=a Nodes=n1,n2,",
    "SwitchName=a Nodes=,n1",
    'SwitchName=a Nodes="n1, n2"',
    'SwitchName=a Nodes="n1 n2"',
    "SwitchName=a Nodes=n1, n2",
    "SwitchName=a Nodes=n[1-2",
    "SwitchName=a Nodes=n1-2]",
    "SwitchName=a Nodes=n[2-1]",
    "SwitchName=a Nodes=n[]",
    "SwitchName=a Nodes=n[1-]",
    "SwitchName=a Nodes=n[-2]",
    "SwitchName=a Nodes=n[1-2]x",
    "SwitchName=a Nodes=n[a-b]",
    "SwitchName=a Nodes=n[1--2]",
    "SwitchName=a Nodes=n1;n2",
    "SwitchName=a Nodes=n1,n1",
    "SwitchName=a Nodes=n9",
    "SwitchName=a Nodes=n5",
    "SwitchName=a Nodes=n1,n9",
    "SwitchName=a Nodes=n3",
    "SwitchName=a Nodes=ALL",
    "SwitchName=a Nodes=n[1-99999]",
    "SwitchName=a Nodes=",
    'SwitchName=a Nodes=""',
    "SwitchName=a",
    # keys, quotes, comments
    "switchname=a nodes=n1",
    "SWITCHNAME=a NODES=n1",
    "  SwitchName=a   Nodes=n1  ",
    "SwitchName=a\tNodes=n1",
    "SwitchName = a Nodes = n1",
    "Nodes=n1 SwitchName=a",
    "SwitchName=a Nodes=n1 # a comment",
    "SwitchName=a Nodes=n1#a comment",
    "SwitchName=a Nodes=n1 Nodes=n2",
    "SwitchName=a Node=n1",
    "SwitchName=a Nodes=n1 Colour=red",
    "SwitchName=a Nodes=n1 n2",
    "SwitchName=a \\\nNodes=n1",
    "SwitchName=a Nodes=n1 \\",
    'SwitchName="a" Nodes="n1"',
    "SwitchName='a' Nodes=n1",
    # link speeds
    "SwitchName=a Nodes=n1 LinkSpeed=100",
    "SwitchName=a Nodes=n1 LinkSpeed=100G",
    "SwitchName=a Nodes=n1 LinkSpeed=0x64",
    "SwitchName=a Nodes=n1 LinkSpeed=unlimited",
    "SwitchName=a Nodes=n1 LinkSpeed=4294967296",
    # switches
    "SwitchName=a Nodes=n1 Switches=b",
    "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2",
    "SwitchName=a Nodes=n1\nSwitchName=c Switches=c",
    "SwitchName=a Nodes=n1\nSwitchName=c Switches=missing",
    "SwitchName=a Nodes=n1\nSwitchName=c Switches=a",
    "SwitchName=a[1] Nodes=n1",
    "SwitchName=a Nodes=n1\nSwitchName=leaf.x_1-2 Nodes=n4",
    "SwitchName=a Nodes=n1\n\n# nothing\nBlockName=x Nodes=n4",
)
AS_MANY_AGREE = len(FORMS) - 2


def text_of(form: str) -> str:
    """The file: the form, one leaf more, and what joins both."""
    return f"{form}\n{REST}\n{ROOT}\n"


def of_slurmctld(form: str, folder: Path) -> dict[str, frozenset[str]] | None:
    """Leaf switch to its nodes; None where slurmctld refuses the file."""
    heard = slurmctld_reads(text_of(form), NODES)
    complaints = [each for each in heard.complaints if "lack access to" not in each]
    if heard.refused or complaints:
        return None
    file = folder / "shown"
    file.write_text(heard.shown)
    try:
        topology = read_topology_conf(file)
    except InputError as error:
        return {str(error): frozenset()}
    return {s.name: frozenset(s.nodes) for s in topology.switches.values() if s.nodes}


def of_ours(form: str, folder: Path, version: tuple[int, int]) -> dict[str, frozenset[str]] | None:
    """The same of `topology check`'s reader."""
    file = folder / "topology.conf"
    file.write_text(text_of(form))
    try:
        topology = read_topology_conf(file)
    except InputError:
        return None
    unknown = any(node not in NODES for node in topology.leaves_of)
    if topology.problems or any(each.by(version) for each in topology.refusals) or unknown:
        return None
    return {s.name: frozenset(s.nodes) for s in topology.switches.values() if s.nodes}


def test_slurmctld_and_check_agree(tmp_path: Path) -> None:
    program = find_program("slurmctld", "slurm-wlm")
    said = subprocess.run([program, "-V"], capture_output=True, text=True).stdout
    major, minor = map(int, said.split()[-1].split(".")[:2])
    theirs = [of_slurmctld(form, tmp_path) for form in FORMS]
    ours = [of_ours(form, tmp_path, (major, minor)) for form in FORMS]
    differ = [(form, a, b) for form, a, b in zip(FORMS, theirs, ours, strict=True) if a != b]
    assert len(FORMS) - len(differ) >= AS_MANY_AGREE, differ
