"""What a real slurmctld with topology/tree gives to a job, at moments of synthetic queues.

`python -m sar_lab.research.peers.slurm_choices OUT.json` (Debian's Slurm, about 3 GB, 20 minutes on
a busy machine; what OUT.json has is not asked again) starts a slurmd for each of 288 nodes on 24
leaf switches, starts the jobs of each moment on their nodes, asks for 20 nodes, and notes which
were given. The moments are those of `mix:SEED,placed=tree`, of which jobs end in random order until
enough nodes are free. Slurm knows leaf switches alone, so the choices are the same for every ratio
of hosts to cables. `jobs/tree_placement.py` gives the same nodes in all 60 (Slurm 22.05.8).
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.tree_placement import hosts_by_leaf, queue_on_tree

QUEUES, NODES = 30, 20
FREE = (0.08, 0.2)
"""Of the nodes, at a moment: what a long queue leaves, and after more jobs have ended."""
SPEC = "xgft:2;12,24;1,{}"
RECORDED = Path(str(files("sar_lab.research"))) / "recorded" / "slurm-choices.json"


def moment(fabric: Fabric, seed: int, free: float) -> list[list[str]]:
    """The hosts of the jobs that run, with at least this share and `NODES` of the hosts free."""
    running = queue_on_tree(fabric, seed)
    hosts = sum(map(len, hosts_by_leaf(fabric).values()))
    order = np.random.default_rng(seed).permutation(len(running)).tolist()
    while hosts - sum(map(len, running)) < max(NODES, free * hosts):
        running[order.pop()] = []
    return [job for job in running if job]


def record(out: Path) -> None:
    """Writes share of free nodes → seed → nodes that slurmctld gave."""
    from sar_lab.live.slurm import SlurmCluster

    fabric = load_fabric(SPEC.format(12))
    leaves = [",".join(hosts) for hosts in hosts_by_leaf(fabric).values()]
    topology = [f"SwitchName=leaf{n} Nodes={hosts}" for n, hosts in enumerate(leaves, 1)]
    topology.append(f"SwitchName=spine Switches=leaf[1-{len(leaves)}]")
    found: dict[str, dict[str, str]] = {str(free): {} for free in FREE}
    if out.exists():
        found = json.loads(out.read_text())
    with SlurmCluster(topology="\n".join(topology) + "\n") as slurm:
        for free in FREE:
            for seed in range(1, QUEUES + 1):
                if str(seed) in found[str(free)]:
                    continue
                jobs = [slurm.salloc(",".join(job)) for job in moment(fabric, seed, free)]
                jobs.append(slurm.salloc(NODES))
                given = slurm.squeue("-h", "-j", jobs[-1], "-o", "%N").strip()
                found[str(free)][str(seed)] = given
                out.write_text(json.dumps(found, indent=1) + "\n")
                slurm.scancel(*jobs)
                slurm.wait_idle()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
