"""`sar-agent topology`: compare Slurm's topology file with the fabric, or generate one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sar_agent.commands.inputs import FabricOption, HcaOption, JsonOption, print_json

app = typer.Typer(
    name="topology",
    help="Compare Slurm's topology file with the fabric, or generate one.",
    no_args_is_help=True,
)


@app.command()
def check(
    fabric: FabricOption,
    conf: Annotated[
        Path, typer.Option("--topology-conf", help="Slurm's topology.conf or topology.yaml")
    ] = Path("/etc/slurm/topology.conf"),
    hca: HcaOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the differences between Slurm's topology and the fabric; exit code 1 if any."""
    from sar_agent.fabric.job_hcas import load_with_hcas
    from sar_agent.slurm.topology_check import compare_topology
    from sar_agent.slurm.topology_files import read_topology, topology_in_use

    network = load_with_hcas(fabric, hca)
    conf = topology_in_use(conf)
    topology = read_topology(conf, strict=False)
    leaf_of = {host: sorted(leaves)[0] for host, leaves in topology.leaves_of.items()}
    differences = [*topology.problems, *compare_topology(network, leaf_of)]
    if as_json:
        print_json({"agree": not differences, "differences": differences})
    else:
        typer.echo("\n".join(differences) or f"{conf} and {fabric} agree")
    if differences:
        raise typer.Exit(1)


@app.command()
def generate(
    fabric: FabricOption,
    form: Annotated[
        Literal["conf", "yaml"],
        typer.Option("--form", help="format of the file; yaml requires Slurm 25.05 or later"),
    ] = "conf",
    out: Annotated[
        Path | None, typer.Option("--out", help="file to write; without it, print the topology")
    ] = None,
    hca: HcaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a topology.conf that fits the fabric.

    It has the leaf switches, islands of leaf switches that are near each other, and one root.
    """
    from sar_agent.fabric.job_hcas import load_with_hcas
    from sar_agent.slurm.topology_generate import generate_topology, topology_conf, topology_yaml
    from sar_agent.util.text_files import write_text

    tree = generate_topology(load_with_hcas(fabric, hca))
    if as_json:
        switches = [
            {"name": each.name, "nodes": list(each.nodes), "switches": list(each.children)}
            for each in tree.switches
        ]
        print_json({"switches": switches, "notes": list(tree.notes)})
        if out is None:
            return
    text = (topology_yaml if form == "yaml" else topology_conf)(tree, fabric)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_text(out, text)
    leaves = sum(1 for switch in tree.switches if switch.nodes)
    hosts = sum(len(switch.nodes) for switch in tree.switches)
    typer.echo(f"{out}: {hosts} hosts on {leaves} leaf switches", err=True)
    for note in tree.notes:
        typer.echo(f"left out: {note}", err=True)
