"""`sar-agent demo`: two assessments of a generated fabric, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.announce import progress
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import JsonOption, print_json
from sar_agent.util.plural import plural

FABRIC = "xgft:2;16,24;1,12"
JOBS = {"scattered": "mix:1", "placed": "mix:1,placed=tree"}
"""`mix:1` scatters jobs, the worst case of fat-tree routes; the other places them as Slurm does."""


@with_host_options
def demo(
    fabric: Annotated[str, typer.Option("--fabric", help="the fabric, as for `route`")] = FABRIC,
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="folder for the HTML page")
    ] = Path("out/demo"),
    as_json: JsonOption = False,
) -> None:
    """Assess a generated fabric with jobs that Slurm scattered, and with jobs that it placed well.

    The same as `assess` for both, on one page. Nothing is installed.
    """
    from sar_lab.assess import assess
    from sar_lab.assess.compile_ahead import compile_ahead
    from sar_lab.assess.side_by_side import write_side_by_side
    from sar_lab.assess.site_data import read_site_data
    from sar_lab.assess.tiles import rings_of, tiles_of
    from sar_lab.mixes.replay_inputs import fabric_of

    compile_ahead()
    network, remarks = fabric_of(fabric)
    found = {}
    for name, jobs in JOBS.items():
        progress(f"{plural(name, 'job')} ({jobs})")
        given = read_site_data(network, jobs, None, None, None, remarks)
        command = f"sar-agent assess --fabric '{fabric}' --jobs {jobs}"
        found[name] = assess(given, command=command, say=progress)
    page = write_side_by_side(found, out)
    if as_json:
        print_json({**{name: each.json() for name, each in found.items()}, "page": str(page)})
        return
    for name, each in found.items():
        typer.echo(f"{name}: {each.judgement.sentence}")
        typer.echo(f"  {rings_of(each)}")
        for tile in tiles_of(each):
            typer.echo(f"  {tile.title.lower()}: {tile.before} → {tile.after}")
    typer.echo(f"Open {page.resolve()}")
