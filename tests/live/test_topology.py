"""A real slurmctld takes the topology.conf that we generate, and schedules by it."""

from __future__ import annotations

import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import topology_conf
from sar_lab.live.slurm import SlurmCluster

pytestmark = pytest.mark.live


def test_slurmctld_takes_the_generated_file() -> None:
    fabric = load_fabric("xgft:3;2,2,2;1,2,2")
    text = topology_conf([(fabric.name, generate_topology(fabric))])
    with SlurmCluster(topology=text) as slurm:
        shown = slurm.run("scontrol", "show", "topology")
        switches = {
            line.split()[0].removeprefix("SwitchName="): line.split()[1]
            for line in shown.splitlines()
        }
        assert switches == {
            **{f"S1-{leaf}": "Level=0" for leaf in range(4)},
            "island1": "Level=1",
            "island2": "Level=1",
            "root": "Level=2",
        }
        assert "Nodes=n[001-008]" in next(x for x in shown.splitlines() if "=root " in x)
        log = (slurm.folder / "log" / "slurmctld.log").read_text()
        assert not [line for line in log.splitlines() if "opology" in line and "error" in line]
        # It is gone by: two nodes under one leaf where one leaf will do.
        slurm.run("salloc", "--no-shell", "-Q", "-N2", "--switches=1")
        nodes = slurm.run("squeue", "-h", "-o", "%N").strip()
        assert nodes in {"n[001-002]", "n[003-004]", "n[005-006]", "n[007-008]"}
