"""`sar-agent topology`: compare Slurm's topology file with the fabric, or generate one."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sar_agent.commands.host_options import load_given, with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, present, print_answer, print_json
from sar_agent.commands.program import Program
from sar_agent.errors import InputError
from sar_agent.util.plural import plural

ForOption = Annotated[
    str | None,
    typer.Option("--for", metavar="VERSION", help="the version of Slurm that reads it, e.g. 22.05"),
]
if TYPE_CHECKING:
    from sar_agent.fabric.model import Fabric

app = Program(
    name="topology", help="Compare Slurm's topology file with the fabric, or generate one."
)


@app.command()
@with_host_options
def check(
    fabric: FabricOption,
    conf: Annotated[
        Path,
        typer.Option(
            "--topology-conf",
            help="Slurm's topology.conf or topology.yaml, or what `scontrol show topology` prints",
        ),
    ] = Path("/etc/slurm/topology.conf"),
    tree: Annotated[
        str | None, typer.Option("--tree", help="which of several trees in a topology.yaml")
    ] = None,
    elsewhere: Annotated[
        str,
        typer.Option(
            "--elsewhere",
            metavar="HOSTS",
            help="nodes that are not in this fabric, as a list of Slurm ('web[01-04]') or a "
            "pattern ('web*'). A switch of Slurm none of whose nodes is in the fabric is left out "
            "without it",
        ),
    ] = "",
    version: ForOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the differences between Slurm's topology and the fabric; exit code 1 if any.

    Compared are hosts, leaf switches, and which leaves the switches above join. Lines that
    slurmctld refuses are listed, too: those that any version refuses or, with --for, that version.
    """
    from sar_agent.slurm.topology_check import check_topology, nodes_elsewhere, nodes_named
    from sar_agent.slurm.topology_files import read_topology, topology_in_use

    network = _given(fabric)
    conf = topology_in_use(conf)
    topology = read_topology(conf, tree=tree, hosts=network.hosts)
    other = nodes_elsewhere(network, topology)
    without = {*chain(*other.values()), *nodes_named(topology, elsewhere)}
    differences = check_topology(network, topology, _version(version), without)
    what = f"the tree {topology.tree} of {conf}" if topology.tree else str(conf)
    lines = differences or [f"{what} and {fabric} agree"]
    if differences and topology.trees:
        lines.append(f"compared with {what}; --tree names another: {', '.join(topology.trees)}")
    if other:
        nodes = sum(map(len, other.values()))
        lines.append(
            f"not of this fabric, and left out: {', '.join(other)} ({plural(nodes, 'node')})"
        )
    elif differences and not elsewhere:
        missing = [host for host in topology.leaves_of if not network.hosts.name_of(host)]
        if missing:
            lines.append("nodes without InfiniBand are left out with --elsewhere HOSTS")
    found = {"agree": not differences, "differences": differences, "elsewhere": sorted(without)}
    print_answer(found, "\n".join(lines), as_json=as_json)
    if differences:
        raise typer.Exit(1)


@app.command()
@with_host_options
def generate(
    fabric: Annotated[
        list[str],
        typer.Option(
            "--fabric", callback=present, help="the fabric; several give a tree each (see `assess`)"
        ),
    ],
    form: Annotated[
        Literal["conf", "yaml", "block"],
        typer.Option(
            "--form",
            help="conf: topology.conf; yaml: topology.yaml (Slurm 25.05 or later); block: "
            "topology.conf of topology/block (24.05 or later)",
        ),
    ] = "conf",
    version: ForOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="file to write; without it, print the topology")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a topology.conf that fits the fabric.

    It has the leaf switches, islands of leaf switches that are near each other, and one root. Leaf
    switches whose descriptions Slurm cannot take have other names; comments give both.
    """
    from sar_agent.slurm.topology_generate import generate_topology
    from sar_agent.slurm.topology_write import topology_text
    from sar_agent.util.text_files import write_text

    trees = [(each, generate_topology(_given(each))) for each in fabric]
    text = topology_text(trees, form, _version(version))
    switches = [switch for _, tree in trees for switch in tree.switches]
    notes = [note for _, tree in trees for note in tree.notes]
    if as_json:
        print_json(
            {
                "switches": [
                    {
                        "name": each.name,
                        "description": each.described or each.name,
                        "nodes": list(each.nodes),
                        "switches": list(each.children),
                    }
                    for each in switches
                ],
                "notes": notes,
            }
        )
        if out is None:
            return
    if out is None:
        typer.echo(text, nl=False)
        return
    write_text(out, text)
    leaves = sum(1 for switch in switches if switch.nodes)
    hosts = sum(len(switch.nodes) for switch in switches)
    on = plural(leaves, "leaf switch", "leaf switches")
    typer.echo(f"{out}: {plural(hosts, 'host')} on {on}", err=True)
    for note in notes:
        typer.echo(f"left out: {note}", err=True)


def _given(spec: str) -> Fabric:
    """The fabric; says which file of a folder was read instead of another."""
    from sar_agent.util.text_files import READ_INSTEAD

    fabric = load_given(spec)
    for note in fabric.notes:
        if READ_INSTEAD in note:
            typer.echo(f"note: {spec}: {note}", err=True)
    return fabric


def _version(text: str | None) -> tuple[int, int] | None:
    """`22.05` or `22.05.8` as (22, 5)."""
    if text is None:
        return None
    match = re.fullmatch(r"(?:slurm-?(?:wlm)? ?)?(\d{2})\.(\d{2})(?:\..*)?", text)
    if not match:
        raise InputError(
            f"--for {text}: not a version of Slurm", remedy="`sinfo --version` says it: 22.05"
        )
    return int(match[1]), int(match[2])
