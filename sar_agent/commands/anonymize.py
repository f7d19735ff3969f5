"""`sar-agent anonymize`: a site's dumps without its names, to be passed on.

All names are replaced by pseudonyms that follow from one key, and GUIDs by numbers in the same
order, since ties between ports are broken by GUID. So the copies have the same measures.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.host_options import load_given, with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, present, print_answer

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.jobs.record import JobRecord

_STEP = 256
"""Distance of the new GUIDs: an HCA's ports have GUIDs between its own and the next node's."""


@dataclass(frozen=True)
class Pseudonyms:
    """Names that follow from a key: the same key and name give the same pseudonym."""

    key: bytes

    def of(self, kind: str, name: str) -> str:
        """`h3f09ac12bbx017` for the host `node17`: ranks follow the numbers of hosts."""
        stem, number = name, ""
        if kind == "h" and (numbered := re.fullmatch(r"(.*?)([0-9]+)", name)):
            stem, number = numbered[1], f"x{numbered[2]}"
        digest = hmac.new(self.key, f"{kind}:{stem}".encode(), hashlib.sha256)
        return f"{kind}{digest.hexdigest()[:10]}{number}"


@with_host_options
def anonymize(
    fabric: FabricOption,
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="folder for the copies")],
    jobs: Annotated[
        Path | None,
        typer.Option("--jobs", callback=present, help="the running jobs, as for `route`"),
    ] = None,
    routes: Annotated[
        Path | None,
        typer.Option("--routes", callback=present, help="forwarding tables, as for `measure`"),
    ] = None,
    topology: Annotated[
        Path | None, typer.Option("--topology-conf", help="Slurm's topology.conf or topology.yaml")
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            envvar="SAR_ANONYMIZE_KEY",
            help="secret from which the pseudonyms follow; the same key gives the same names in "
            "later dumps. Without it, a random one is used and forgotten",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Copy dumps without names, users, accounts, comments and real GUIDs; the measures stay equal.

    Kept: cables, ports, link rates, LIDs, the names of HCAs (mlx5_0), the kind of a host (compute,
    storage), the last number in a host's name, the sizes, partners, partitions and traffic hints
    of jobs, and the order of job numbers and GUIDs. Hosts whose names differ in more than that
    number change their order, and with it the ranks of a job: one message at a time may then
    differ.
    """
    from sar_agent.commands.inputs import read_routes
    from sar_agent.fabric.ibsim_net import write_ibsim_net
    from sar_agent.formats.export import export_routes
    from sar_agent.slurm.job_files import read_jobs_file
    from sar_agent.slurm.squeue_text import squeue_pipe
    from sar_agent.slurm.topology_files import read_topology, topology_in_use
    from sar_agent.util.text_files import write_text

    names = Pseudonyms(key.encode() or secrets.token_bytes(32))
    network = load_given(fabric)
    records = read_jobs_file(jobs) if jobs else ()
    tables = read_routes(routes, network) if routes else None
    tree = read_topology(topology_in_use(topology)) if topology else None
    # All input was read: from here on files are written.
    copy = anonymous_fabric(network, names)
    out.mkdir(parents=True, exist_ok=True)
    write_ibsim_net(copy, out / "fabric.net")
    files = ["fabric.net"]
    if jobs:
        write_text(out / "jobs.txt", squeue_pipe(anonymous_jobs(records, network, names)))
        files.append("jobs.txt")
    if tables is not None:
        export_routes(out, copy, replace(tables, fabric_digest=copy.digest), ["lfts"])
        files.append("lfts.dump")
    if tree is not None:
        lines = [
            _switch_line(switch.name, host_names(network, switch.nodes), switch.children, names)
            for switch in tree.switches.values()
        ]
        write_text(out / "topology.conf", "\n".join(lines) + "\n")
        files.append("topology.conf")
    answer = {"files": files, "hosts": len(network.hosts), "switches": network.switches}
    answer["jobs"] = len(records)
    print_answer(answer, f"{out}: {', '.join(files)}", as_json=as_json)
    if not key:
        note("the key was random: another run gives other names (--key)")


def anonymous_fabric(fabric: Fabric, names: Pseudonyms) -> Fabric:
    """The same fabric with other names; its GUIDs keep their order."""
    import numpy as np

    from sar_agent.fabric.hostnames import HostMapper

    host_of = {host: names.of("h", host) for host in fabric.hosts}
    nodes = np.unique(np.concatenate([fabric.switch_guid, fabric.terminal_node_guid]))
    everyone = np.unique(np.concatenate([nodes, fabric.terminal_guid]))

    def renumbered(guids: np.ndarray) -> np.ndarray:
        return ((np.searchsorted(everyone, guids) + 1) * _STEP).astype(np.uint64)

    mapper = HostMapper()
    descriptions = tuple(
        f"{host_of[host]} {mapper(text).hca}".strip()
        for host, text in zip(fabric.terminal_host, fabric.terminal_description, strict=True)
    )
    return replace(
        fabric,
        name="anonymous",
        notes=(),
        switch_name=tuple(
            names.of("s", f"{name}/{guid}")
            for name, guid in zip(fabric.switch_name, fabric.switch_guid.tolist(), strict=True)
        ),
        switch_guid=renumbered(fabric.switch_guid),
        terminal_guid=renumbered(fabric.terminal_guid),
        terminal_node_guid=renumbered(fabric.terminal_node_guid),
        terminal_host=tuple(host_of[host] for host in fabric.terminal_host),
        terminal_description=descriptions,
    )


def host_names(fabric: Fabric, hosts: Iterable[str]) -> tuple[str, ...]:
    """The hosts as the fabric spells them: `N001` and `n001` get one pseudonym."""
    return tuple(fabric.hosts.name_of(host) or host for host in hosts)


def anonymous_jobs(
    records: Iterable[JobRecord], fabric: Fabric, names: Pseudonyms
) -> list[JobRecord]:
    """The same jobs under numbers from 1, without users and start times. A word after `sar:` that
    is no hint has no effect, and might be a name."""
    from sar_agent.jobs.traffic import is_traffic

    return [
        record._replace(
            id=str(number),
            hosts=tuple(names.of("h", host) for host in host_names(fabric, record.hosts)),
            user="",
            partition=record.partition and names.of("p", record.partition),
            start=None,
            traffic=record.traffic if record.traffic and is_traffic(record.traffic) else None,
            uid=None,
            raw=(),
        )
        for number, record in enumerate(records, 1)
    ]


def _switch_line(
    name: str, nodes: Iterable[str], children: Iterable[str], names: Pseudonyms
) -> str:
    words = f"SwitchName={names.of('t', name)}"
    if hosts := ",".join(names.of("h", host) for host in nodes):
        words += f" Nodes={hosts}"
    if switches := ",".join(names.of("t", child) for child in children):
        words += f" Switches={switches}"
    return words
