"""What the files are that settings name: each is read once, as the agent will read it.

A path that exists is not enough: `fabric.file` that names a topology.conf is found by the agent's
first pass only, and a dump of tables that cannot be read is a warning in its log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.errors import SarError

if TYPE_CHECKING:
    from sar_agent.config.model import Config
    from sar_agent.fabric import Fabric


def read_named_files(settings: Config) -> tuple[list[str], list[str]]:
    """A sentence on each file that could be read or may be missing, and one on each that is wrong;
    both begin with the key."""
    from sar_agent.agent.fabric_source import read_fabric

    said, wrong = list[str](), list[str]()
    fabric: Fabric | None = None

    def read(key: str, name: str, what: Callable[[], str], missing: str = "") -> None:
        if not name:
            return
        if not Path(name).exists():
            line = f"{key} = {name!r}: no such file; {missing or 'check the path'}"
            (said if missing else wrong).append(line)
            return
        try:
            said.append(f"{key}: {name} is {what()}")
        except SarError as error:
            wrong.append(f"{key}: {error}")

    def the_fabric() -> str:
        nonlocal fabric
        fabric = read_fabric(settings.fabric)
        return f"a fabric of {len(fabric.hosts)} hosts and {fabric.switches} switches"

    read("fabric.file", settings.fabric.file, the_fabric)
    dump, partitions = settings.opensm.lfts_dump, settings.agent.ib_partitions_file
    conf = settings.slurm.topology_conf
    read("opensm.lfts_dump", dump, lambda: _tables(dump, fabric))
    read("agent.ib_partitions_file", partitions, lambda: _partitions(partitions, fabric))
    without = "the leaf switches are those of the fabric"
    read("slurm.topology_conf", conf, lambda: _topology(conf), without)
    return said, wrong


def _tables(name: str, fabric: Fabric | None) -> str:
    from sar_agent.formats.lfts_dump import parse_tables, read_lfts_dump
    from sar_agent.util.text_files import read_text

    if fabric is not None:
        read_lfts_dump(name, fabric)
        return f"a dump of forwarding tables of {fabric.name}"
    parse_tables(read_text(Path(name)).encode(), name)
    return "a dump of forwarding tables"


def _partitions(name: str, fabric: Fabric | None) -> str:
    from sar_agent.jobs import JobMix
    from sar_agent.jobs.partition_policy import read_partitions

    if fabric is None:
        return "there; its content needs the fabric, which is not in a file"
    read_partitions(Path(name), fabric, JobMix(()))
    return "a partition policy of OpenSM"


def _topology(name: str) -> str:
    from sar_agent.slurm.topology_files import read_topology, topology_in_use

    topology = read_topology(topology_in_use(name))
    hosts = sum(len(switch.nodes) for switch in topology.switches.values())
    return f"Slurm's topology of {len(topology.switches)} switches and {hosts} hosts"
