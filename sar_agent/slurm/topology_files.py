"""Slurm's topology in either of its files; the name decides, as in Slurm."""

from __future__ import annotations

from pathlib import Path

from sar_agent.slurm.topology import SlurmTopology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_yaml import read_topology_yaml

YAML = (".yaml", ".yml")


def read_topology(path: str | Path, *, strict: bool = True) -> SlurmTopology:
    """`topology.yaml` or, by any other name, `topology.conf`. Raises `InputError`."""
    read = read_topology_yaml if Path(path).suffix in YAML else read_topology_conf
    return read(path, strict=strict)


def topology_in_use(conf: str | Path) -> Path:
    """The file that Slurm uses: from 25.05 on, a `topology.yaml` beside `topology.conf`."""
    path = Path(conf)
    beside = path.with_name("topology.yaml")
    return beside if path.name == "topology.conf" and beside.exists() else path
