"""`sar-agent topology`: does Slurm see the network that is there? And a file that says what is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sar_agent.commands.inputs import FabricOption, JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Adds the group."""
    group = typer.Typer(help="Slurm's topology against the fabric.", no_args_is_help=True)
    app.add_typer(group, name="topology")

    @group.callback()
    def _group() -> None:
        pass

    @group.command("check")
    def check(
        fabric: FabricOption,
        conf: Annotated[
            Path, typer.Option("--topology-conf", help="topology.conf or topology.yaml")
        ] = Path("/etc/slurm/topology.conf"),
        as_json: JsonOption = False,
    ) -> None:
        """Say in words where Slurm's topology and the fabric differ; exit code 1 if they do."""
        from sar_agent.fabric.spec import load_fabric
        from sar_agent.slurm.topology_check import compare_topology
        from sar_agent.slurm.topology_files import read_topology, topology_in_use

        network = load_fabric(fabric)
        conf = topology_in_use(conf)
        slurm = read_topology(conf, strict=False)
        leaf_of = {host: sorted(leaves)[0] for host, leaves in slurm.leaves_of.items()}
        found = [*slurm.problems, *compare_topology(network, leaf_of)]
        if as_json:
            print_json({"agree": not found, "differences": found})
        else:
            typer.echo("\n".join(found) or f"{conf} and {fabric} agree")
        if found:
            raise typer.Exit(1)

    @group.command("generate")
    def generate(
        fabric: FabricOption,
        form: Annotated[
            Literal["conf", "yaml"], typer.Option("--form", help="yaml is for Slurm 25.05 or later")
        ] = "conf",
        out: Annotated[
            Path | None, typer.Option("--out", help="file to write; else it is printed")
        ] = None,
    ) -> None:
        """Write the topology.conf that fits the fabric: leaves, islands that are near, one root."""
        from sar_agent.fabric.spec import load_fabric
        from sar_agent.slurm.topology_generate import (
            generate_topology,
            topology_conf,
            topology_yaml,
        )
        from sar_agent.util.text_files import write_text

        tree = generate_topology(load_fabric(fabric))
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
