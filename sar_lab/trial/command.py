"""`sar-agent trial`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption


def register(app: typer.Typer) -> None:
    """Adds the command."""
    from sar_lab.commands import EVALUATE

    app.command("trial", rich_help_panel=EVALUATE)(trial)


def trial(
    folder: Annotated[Path, typer.Argument(help="folder for the page and the results")],
    config: ConfigOption = CONFIG_PATH,
    reservation: Annotated[
        str, typer.Option("--reservation", help="Slurm's reservation with the nodes of the trial")
    ] = "",
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="[NAME=]COMMAND",
            help="benchmark of yours, started on half of the nodes; may be given several times. "
            "Without any, nothing is run and installed: the command says what a trial would show",
        ),
    ] = None,
    beside: Annotated[
        str,
        typer.Option("--beside", help="command of a second job, on the other nodes"),
    ] = "",
    launch: Annotated[
        str,
        typer.Option(
            "--launch", help='program that starts commands: "sudo -n -u alice srun --mpi=pmix"'
        ),
    ] = "srun",
    tables: Annotated[
        str, typer.Option("--tables", help="engines that are compared with the site's own tables")
    ] = "ftree,dmodk,sar,sar-plus",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=100, help="how often all tables are tried")
    ] = 5,
    minutes: Annotated[
        float, typer.Option("--minutes", min=1, max=1440, help="after which the trial ends")
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", help="of the random order of tables")] = 1,
    perfquery: Annotated[
        str,
        typer.Option("--perfquery", help="program that reads counters; none: do not count"),
    ] = "perfquery",
    opensm_conf: Annotated[
        Path, typer.Option(help="OpenSM's configuration, which says if adaptive routing is on")
    ] = Path("/etc/opensm/opensm.conf"),
    anyway: Annotated[
        bool, typer.Option("--anyway", help="also where a trial is likely to show nothing")
    ] = False,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="only go back, after a trial that died"),
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="time the commands in an emulated fabric of the site; installs nothing (root)",
        ),
    ] = False,
    mbit: Annotated[
        float, typer.Option("--mbit", min=0.01, max=10000, help="rate of cables in a rehearsal")
    ] = 8.0,
) -> None:
    """Time your own benchmarks on your own tables and on ours, and go back.

    Needs a reservation of nodes on two leaf switches or more. Installs by proved steps, in random
    order, and installs the site's own tables again at the end, on Ctrl-C, on a deadline, when a
    cable dies, and when it is killed. Writes a page, and a folder without names that you may send.
    """
    from sar_agent.errors import InputError
    from sar_lab.trial.whole_trial import Wishes, whole_trial

    wishes = Wishes(
        folder=folder,
        config=config,
        reservation=reservation,
        run=tuple(run or ()),
        beside=beside,
        launch=launch,
        tables=tuple(tables.split(",")),
        rounds=rounds,
        minutes=minutes,
        seed=seed,
        perfquery=perfquery,
        opensm_conf=opensm_conf,
        anyway=anyway,
        undo=undo,
        rehearse=rehearse,
        rate=mbit * 1e6,
    )
    if not (reservation or undo):
        raise InputError("no reservation is named", remedy="give --reservation")
    if not whole_trial(wishes, typer.echo):
        raise typer.Exit(1)
