"""What the files are that settings name: each is read once, as the agent will read it. Where the
fabric is in none, the plugin or the command is asked for it once.

A path that exists is not enough: `fabric.file` that names a topology.conf is found by the agent's
first pass only, and a dump of tables that cannot be read is a warning in its log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.errors import InputError, SarError
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.config.model import Config
    from sar_agent.fabric import Fabric


def read_named_files(settings: Config) -> tuple[list[str], list[str]]:
    """A sentence on each file that could be read or may be missing, and one on each that is wrong;
    both begin with the key. That no fabric is told now is not wrong."""
    from sar_agent.agent.fabric_source import read_fabric
    from sar_agent.config.services import load_hook, services

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

    if settings.fabric.file:
        read("fabric.file", settings.fabric.file, the_fabric)
    else:
        fabric, told = _fabric_now(settings)
        said.append(f"fabric: {told}")
    dump, partitions = settings.opensm.lfts_dump, settings.agent.ib_partitions_file
    conf = settings.slurm.topology_conf
    read("opensm.lfts_dump", dump, lambda: _tables(dump, fabric))
    read("agent.ib_partitions_file", partitions, lambda: _partitions(partitions, fabric))
    queue, token = settings.slurm.jobs_file, settings.slurm.rest_token_file
    read("slurm.jobs_file", queue, lambda: _queue(queue, fabric))
    read("slurm.rest_token_file", token, lambda: "there; only slurmrestd knows whether it is valid")
    without = "the leaf switches are those of the fabric"
    read("slurm.topology_conf", conf, lambda: _topology(conf, fabric), without)
    if fabric is not None:
        wrong += match_nothing(settings, fabric)
        for name, service in services().items():
            if service.check:
                more, bad = load_hook(name, service.check)(settings, fabric)
                said, wrong = [*said, *more], [*wrong, *bad]
    return said, wrong


def fabric_words(fabric: Fabric) -> str:
    """`a fabric of 16 hosts and 6 switches`."""
    switches = plural(fabric.switches, "switch", "switches")
    return f"a fabric of {plural(len(fabric.hosts), 'host')} and {switches}"


def _fabric_now(settings: Config) -> tuple[Fabric | None, str]:
    """What the plugin or the command tells now, also in words."""
    from sar_agent.agent.fabric_source import read_fabric
    from sar_agent.install.subnet_manager import load_subnet_manager

    soon = min(20.0, settings.fabric.deadline_seconds)
    try:
        if settings.fabric_from_plugin:
            source, fabric = "the plugin", load_subnet_manager(settings).fabric()
        else:
            source = settings.fabric.command[0]
            fabric = read_fabric(settings.fabric.model_copy(update={"deadline_seconds": soon}))
    except SarError as error:
        return None, f"no answer now: {error}"
    return fabric, f"{source} tells {fabric_words(fabric)}"


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


def _queue(name: str, fabric: Fabric | None) -> str:
    from sar_agent.slurm.job_files import read_jobs_file

    records = read_jobs_file(name)
    hosts = {host for record in records for host in record.hosts}
    return f"a list of {plural(len(records), 'running job')}{_strangers(hosts, fabric)}"


def _strangers(hosts: Collection[str], fabric: Fabric | None) -> str:
    """What of these hosts the fabric lacks, as the rest of a sentence."""
    lost = [] if fabric is None else sorted(fabric.hosts.without([hosts]))
    if not lost:
        return ""
    these = plural(len(lost), "of its hosts is", "of its hosts are")
    return f"; {these} not in the fabric, the first is {lost[0]}"


def _partitions(name: str, fabric: Fabric | None) -> str:
    from sar_agent.jobs import JobMix
    from sar_agent.jobs.partition_policy import read_partitions
    from sar_agent.util.other_files import other_file
    from sar_agent.util.text_files import read_text

    if fabric is None:
        if what := other_file(read_text(Path(name))):
            raise InputError(f"this is {what}, not partitions", file=name)
        return "there; its content needs the fabric, which is not in a file"
    read_partitions(Path(name), fabric, JobMix(()))
    return "a partition policy of OpenSM"


def _topology(name: str, fabric: Fabric | None) -> str:
    from sar_agent.slurm.topology_files import read_topology, topology_in_use

    topology = read_topology(topology_in_use(name))
    hosts = [host for switch in topology.switches.values() for host in switch.nodes]
    switches = plural(len(topology.switches), "switch", "switches")
    return (
        f"Slurm's topology of {switches} and {plural(len(hosts), 'host')}"
        f"{_strangers(hosts, fabric)}"
    )
