"""Slurm's topology in either of its files; the name decides, as in Slurm."""

from __future__ import annotations

from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.slurm.topology import SlurmTopology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_yaml import read_topology_yaml

YAML = (".yaml", ".yml")


def read_topology(
    path: str | Path, *, strict: bool = True, tree: str | None = None
) -> SlurmTopology:
    """`topology.yaml` or, by any other name, `topology.conf`, or what `scontrol show topology`
    prints. `tree` names one of several in a `topology.yaml`. Raises `InputError`."""
    if Path(path).suffix in YAML:
        return read_topology_yaml(path, strict=strict, tree=tree)
    if tree is not None:
        raise InputError("names no trees", file=path, remedy="give --tree for a topology.yaml only")
    return read_topology_conf(path, strict=strict)


def topology_in_use(conf: str | Path) -> Path:
    """The file that Slurm uses: from 25.05 on, a `topology.yaml` beside `topology.conf`."""
    path = Path(conf)
    beside = path.with_name("topology.yaml")
    return beside if path.name == "topology.conf" and beside.exists() else path
