"""`sar-agent demo`: before and after, on a generated fabric, with a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_json, read_fabric, read_mix

_FABRIC = "xgft:2;16,24;1,12"


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def demo(
        fabric: Annotated[
            str, typer.Option("--fabric", help="a spec like xgft:2;16,24;1,12 or a fabric file")
        ] = _FABRIC,
        jobs: Annotated[
            str, typer.Option("--jobs", help="mix:SEED (synthetic) or a file of jobs")
        ] = "mix:1",
        out: Annotated[Path, typer.Option("--out", help="folder for the page")] = Path("out/demo"),
        as_json: JsonOption = False,
    ) -> None:
        """Compare job-aware with oblivious routes; nothing is installed. Writes an HTML page."""
        from rich.console import Console

        from sar_lab.demo import run_demo
        from sar_lab.demo.comparison_table import comparison_table
        from sar_lab.demo.demo_folder import write_demo

        network = read_fabric(fabric)
        mix = read_mix(jobs, network)
        found = run_demo(network, mix, fabric_spec=fabric, jobs_spec=jobs)
        page = write_demo(found, out)
        if as_json:
            print_json({**found.json(), "page": str(page)})
            return
        synthetic = "made up, not a site's" if jobs.startswith("mix:") else "as given"
        typer.echo(
            f"{network.terminals} hosts, {network.switches} switches ({fabric}); {len(mix.jobs)} "
            f"jobs that span switches ({jobs}: {synthetic})"
        )
        Console(highlight=False).print(comparison_table(found.main))
        for result in found.main.results:
            if not result.verdict.passed:
                typer.echo(f"{result.engine}: {result.checked}")
        typer.echo(f"Look at it: {page.resolve()}")
