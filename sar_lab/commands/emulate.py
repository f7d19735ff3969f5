"""`sar-lab emulate`: programs timed on tables, over real packets in an emulated fabric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JobsOption, JsonOption, print_json
from sar_agent.errors import InputError


@with_host_options
def emulate(
    fabric: FabricOption = "",
    jobs: JobsOption = "",
    tables: Annotated[
        str,
        typer.Option(
            "--tables",
            help="engines, and dumps or folders of routes, separated by commas; others are "
            "compared with the first",
        ),
    ] = "ftree,sar-plus",
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="PATTERNS|[NAME=]COMMAND",
            help="patterns of all jobs, separated by commas: ring, halo, pairwise, at-once, "
            "recursive-doubling, or another word of `--sar-traffic`; or, with a space in it, a "
            "command that each job runs and that prints its time, such as 'mpirun PROGRAM' of Open "
            "MPI; may be given several times. Without any, these five patterns",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=100, help="how often all tables are tried")
    ] = 5,
    mbit: Annotated[
        float,
        typer.Option(
            "--mbit",
            min=0.01,
            max=10000,
            help="rate of every cable in each direction; halved where the machine is busy",
        ),
    ] = 2.0,
    size: Annotated[
        int,
        typer.Option("--bytes", min=1000, max=1 << 30, help="through the busiest port of each job"),
    ] = 250_000,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="after which a command is given up")
    ] = 120,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="the whole loop instead: on a small fabric of its own, OpenSM, Slurm and the "
            "agent run, jobs of Open MPI send, and what happens is told; of the other options "
            "only --mbit and --out count",
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="folder for the page of --live")
    ] = Path("out/live"),
    as_json: JsonOption = False,
) -> None:
    """Time programs on several tables, over real packets between network namespaces.

    Every switch and host port is a network namespace, every cable a veth pair with a rate, every
    entry of a table a route. It is an IP network with InfiniBand's tables: no credits, no
    head-of-line blocking, no virtual lanes, no RDMA. Tables are tried in turn in each round. Beside
    each time stands the share of the processors that was idle; with less than .25 a run does not
    count, and the rate is halved, at most three times. Times of patterns are multiples of what the
    busiest port of a job would take alone; those of commands are what they print. `$SAR_FOLDER` of
    a command has inputs of LAMMPS ('sh -c "cd $SAR_FOLDER && mpirun lmp -in lj.in"') and of HPCC
    ('sh -c "sh $SAR_FOLDER/hpcc.sh MPIFFT"', or LatencyBandwidth for its ring). Needs root.
    """
    if live:
        if fabric or jobs or run or as_json:
            raise InputError(
                "--live has a fabric and jobs of its own, and tells what happens in text",
                remedy="of the other options give only --mbit and --out",
            )
        from sar_lab.emulate.live.play import emulate_live

        raise typer.Exit(emulate_live(out, mbit * 1e6))
    if not fabric or not jobs:
        raise InputError("nothing to emulate", remedy="give --fabric and --jobs, or --live")
    from sar_agent.commands.announce import note
    from sar_lab.emulate import WHAT_IT_IS_NOT
    from sar_lab.emulate.whole import Wishes, emulated

    given = run or ["ring,halo,pairwise,at-once,recursive-doubling"]
    patterns = [text for text in given if not _is_command(text)]
    wishes = Wishes(
        fabric=fabric,
        jobs=jobs,
        tables=tuple(filter(None, tables.split(","))),
        run=tuple(word for text in patterns for word in text.replace(",", " ").split()),
        commands=tuple(text for text in given if _is_command(text)),
        seconds=seconds,
        rounds=rounds,
        rate=mbit * 1e6,
        size=size,
    )
    emulation = emulated(wishes, note)
    rows = list(emulation.rows())
    if as_json:
        print_json(
            {
                "is": WHAT_IT_IS_NOT,
                "terminals": emulation.fabric.terminals,
                "jobs": [len(job.terminals) for job in emulation.mix.jobs],
                "bytes": size,
                "rounds": rounds,
                "rows": rows,
            }
        )
    else:
        from rich.console import Console

        from sar_lab.emulate.report import times_table

        Console(highlight=False).print(times_table(emulation))
        typer.echo(f"Emulated: {WHAT_IT_IS_NOT}.")
    if not all(row["measured"] for row in rows):
        raise typer.Exit(1)


def _is_command(text: str) -> bool:
    """Whether there is a space that is not beside a comma: `ring, halo` are patterns."""
    return " " in re.sub(" *, *", ",", text.strip())
