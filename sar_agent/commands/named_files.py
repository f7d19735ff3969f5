"""What the files are that settings name: each is read once, as the agent will read it.

A path that exists is not enough: `fabric.file` that names a topology.conf is found by the agent's
first pass only, and a dump of tables that cannot be read is a warning in its log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.errors import SarError
from sar_agent.util.plural import plural

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
        return fabric_words(fabric)

    read("fabric.file", settings.fabric.file, the_fabric)
    dump, partitions = settings.opensm.lfts_dump, settings.agent.ib_partitions_file
    conf = settings.slurm.topology_conf
    read("opensm.lfts_dump", dump, lambda: _tables(dump, fabric))
    read("agent.ib_partitions_file", partitions, lambda: _partitions(partitions, fabric))
    queue, token = settings.slurm.jobs_file, settings.slurm.rest_token_file
    read("slurm.jobs_file", queue, lambda: _queue(queue))
    read("slurm.rest_token_file", token, lambda: "there; only slurmrestd knows whether it is valid")
    without = "the leaf switches are those of the fabric"
    read("slurm.topology_conf", conf, lambda: _topology(conf), without)
    if fabric is not None:
        wrong += match_nothing(settings, fabric)
    return said, wrong


def fabric_words(fabric: Fabric) -> str:
    """`a fabric of 16 hosts and 6 switches`."""
    switches = plural(fabric.switches, "switch", "switches")
    return f"a fabric of {plural(len(fabric.hosts), 'host')} and {switches}"


def match_nothing(settings: Config, fabric: Fabric) -> list[str]:
    """A sentence for each pattern of hosts, HCAs and places to which nothing of the fabric fits."""
    from sar_agent.fabric.unmatched import unmatched
    from sar_agent.reports.places import PlaceNames

    names = PlaceNames(fabric)
    wrong = [
        f"fabric.{each.key} {each} ({fabric.name})"
        for each in unmatched(fabric, settings.fabric.mapper)
    ]
    for place in settings.cables.ignore:
        try:
            names(place)
        except SarError as error:
            wrong.append(f"cables.ignore: {error}")
    return wrong


def _tables(name: str, fabric: Fabric | None) -> str:
    from sar_agent.formats.lfts_dump import parse_tables
    from sar_agent.formats.read_tables import read_tables
    from sar_agent.util.text_files import read_text

    if fabric is not None:
        read_tables(Path(name), fabric)
        return f"a dump of forwarding tables of {fabric.name}"
    parse_tables(read_text(Path(name)).encode(), name)
    return "a dump of forwarding tables"


def _queue(name: str) -> str:
    from sar_agent.slurm.job_files import read_jobs_file

    return f"a list of {plural(len(read_jobs_file(name)), 'running job')}"


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
    switches = plural(len(topology.switches), "switch", "switches")
    return f"Slurm's topology of {switches} and {plural(hosts, 'host')}"
