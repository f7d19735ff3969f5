"""`sar-agent assess`: what would my cluster gain? A report from a site's own dumps."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def assess(
        fabric: Annotated[
            str,
            typer.Option(
                "--fabric",
                help="ibnetdiscover file, ibsim .net, subnet.lst, a spec, or Leonardo's list of "
                "nodes and switches (then the cables are a stand-in)",
            ),
        ],
        jobs: Annotated[
            str | None,
            typer.Option(
                "--jobs", help="squeue JSON or pipe text, a job-to-terminal map, or mix:SEED"
            ),
        ] = None,
        history: Annotated[
            Path | None,
            typer.Option(
                "--history",
                help="sacct text (-P) or JSON, a CSV job,start,end,nodelist, or a folder or tar "
                "of JOBID.txt",
            ),
        ] = None,
        routes: Annotated[
            Path | None,
            typer.Option("--routes", help="today's tables: opensm-lfts.dump, as for `measure`"),
        ] = None,
        topology: Annotated[
            Path | None,
            typer.Option("--topology-conf", help="Slurm's topology.conf or topology.yaml"),
        ] = None,
        engine: Annotated[
            list[str] | None,
            typer.Option("--engine", help="instead of the usual six; repeatable"),
        ] = None,
        adaptive: Annotated[
            bool, typer.Option("--adaptive", help="adaptive routing is in force on this network")
        ] = False,
        samples: Annotated[
            int, typer.Option("--samples", min=0, help="moments of the history to look at")
        ] = 48,
        simulate: Annotated[
            bool,
            typer.Option(
                "--simulate/--no-simulate",
                help="the jobs' traffic before and after, where they are few enough",
            ),
        ] = True,
        out: Annotated[Path, typer.Option("--out", help="folder for the page")] = Path(
            "out/assess"
        ),
        as_json: JsonOption = False,
    ) -> None:
        """What would I gain? Writes an HTML report and assess.json; nothing is installed."""
        from sar_agent.routing import load_engine
        from sar_lab.assess import assess as run
        from sar_lab.assess.assess_page import write_assessment
        from sar_lab.assess.rate import ENGINES
        from sar_lab.assess.site_data import read_site_data
        from sar_lab.mixes.replay_inputs import fabric_of

        names = tuple(engine or ENGINES)
        for name in names:
            load_engine(name)  # a wrong name is told before the work
        network, remarks = fabric_of(fabric)
        given = read_site_data(network, jobs, history, routes, topology, remarks)
        found = run(
            given,
            command=shlex.join(["sar-agent", *sys.argv[1:]]),
            engines=names,
            adaptive=adaptive,
            samples=samples,
            simulate=simulate,
            say=_say,
        )
        page = write_assessment(found, out)
        if as_json:
            print_json({**found.json(), "page": str(page)})
            return
        typer.echo(found.judgement.sentence)
        typer.echo(found.judgement.why)
        if found.ratings.assumed:
            typer.echo(
                f"before: {found.ratings.before.name}, as no tables were given (--routes); "
                f"after: {found.ratings.after.name if found.ratings.after else 'none'}"
            )
        for left in given.left_out:
            typer.echo(f"left out: {left}")
        typer.echo(f"Look at it: {page.resolve()}")


def _say(what: str) -> None:
    """Where it stands, to who watches a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"… {what}", err=True)
