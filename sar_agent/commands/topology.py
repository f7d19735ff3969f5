"""`sar-agent topology check`: does Slurm see the network that is there?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.output import FabricOption, JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Adds the group."""
    group = typer.Typer(help="Slurm's topology.conf against the fabric.", no_args_is_help=True)
    app.add_typer(group, name="topology")

    @group.callback()
    def _group() -> None:
        pass

    @group.command("check")
    def check(
        fabric: FabricOption,
        conf: Annotated[Path, typer.Option("--topology-conf", help="Slurm's file")] = Path(
            "/etc/slurm/topology.conf"
        ),
        as_json: JsonOption = False,
    ) -> None:
        """Say in words where topology.conf and the fabric differ; exit code 1 if they do."""
        from sar_agent.fabric.spec import load_fabric
        from sar_agent.fabric.topology_check import compare_topology
        from sar_agent.fabric.topology_conf import read_topology_conf

        network = load_fabric(fabric)
        slurm = read_topology_conf(conf, strict=False)
        leaf_of = {host: sorted(leaves)[0] for host, leaves in slurm.leaves_of.items()}
        found = [*slurm.problems, *compare_topology(network, leaf_of)]
        if as_json:
            print_json({"agree": not found, "differences": found})
        else:
            typer.echo("\n".join(found) or f"{conf} and {fabric} agree")
        if found:
            raise typer.Exit(1)
