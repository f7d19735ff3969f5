"""Slurm's topology in either of its files; the name decides, as in Slurm."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.slurm.topology import SlurmTopology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_yaml import read_topology_yaml
from sar_agent.util.other_files import TOPOLOGY_CONF, other_file
from sar_agent.util.text_files import read_text

YAML = (".yaml", ".yml")


def read_topology(
    path: str | Path, *, tree: str | None = None, hosts: Collection[str] = ()
) -> SlurmTopology:
    """`topology.yaml` or, by any other name, `topology.conf`, or what `scontrol show topology`
    prints. `tree` names one of several in a `topology.yaml`; without it, the one that names most of
    `hosts` is read, or else the one that Slurm uses. Raises `InputError`."""
    if Path(path).suffix in YAML:
        return read_topology_yaml(path, tree=tree, hosts=hosts)
    if tree is not None:
        raise InputError("names no trees", file=path, remedy="give --tree for a topology.yaml only")
    try:
        return read_topology_conf(path)
    except InputError as error:
        if (what := other_file(read_text(Path(path)))) not in ("", TOPOLOGY_CONF):
            raise InputError(
                f"this is {what}, not Slurm's topology",
                file=path,
                remedy="give topology.conf, topology.yaml or what `scontrol show topology` prints",
            ) from error
        raise


def topology_in_use(conf: str | Path) -> Path:
    """The file that Slurm uses: from 25.05 on, a `topology.yaml` beside `topology.conf`."""
    path = Path(conf)
    beside = path.with_name("topology.yaml")
    return beside if path.name == "topology.conf" and beside.exists() else path
