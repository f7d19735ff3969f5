"""`sar-agent demo`: job-aware and oblivious routes compared on an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.announce import progress
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import (
    FabricOption,
    JobsOption,
    JsonOption,
    print_json,
    read_fabric,
    read_mix,
)


@with_host_options
def demo(
    fabric: FabricOption = "xgft:2;16,24;1,12",
    jobs: JobsOption = "mix:1",
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="folder for the HTML page")
    ] = Path("out/demo"),
    as_json: JsonOption = False,
) -> None:
    """Compare job-aware with oblivious routes on an HTML page. Nothing is installed."""
    from rich.console import Console

    from sar_agent.jobs.synthetic import FORMS
    from sar_lab.assess.compile_ahead import compile_ahead
    from sar_lab.demo import run_demo
    from sar_lab.demo.comparison_table import comparison_table
    from sar_lab.demo.demo_folder import write_demo

    compile_ahead([("sar-plus",), ("dfsssp", "sar")])
    network = read_fabric(fabric)
    mix = read_mix(jobs, network)
    found = run_demo(network, mix, fabric_spec=fabric, jobs_spec=jobs, say=progress)
    page = write_demo(found, out)
    if as_json:
        print_json({**found.json(), "page": str(page)})
        return
    origin = "synthetic, not those of a site" if jobs.startswith(FORMS) else "as given"
    typer.echo(
        f"{network.terminals} hosts, {network.switches} switches ({fabric}); {len(mix.whole_jobs)} "
        f"jobs that span switches ({jobs}: {origin})"
    )
    Console(highlight=False).print(comparison_table(found.main))
    for result in found.main.results:
        if not result.verdict.passed:
            typer.echo(f"{result.engine}: {result.checked}")
    typer.echo(f"Open {page.resolve()}")
