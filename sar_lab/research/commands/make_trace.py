"""`sar-lab make-trace`: a well-known program as a trace for `simulate-trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_json


def make_trace(
    program: Annotated[str, typer.Argument(help="alltoall, cartesian, cgd128 or wrf256")],
    ranks: Annotated[
        int, typer.Option("--ranks", min=0, help="ranks of each job; 0: as many as the program has")
    ] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="number of jobs that run at once")] = 1,
    size: Annotated[
        str,
        typer.Option(
            "--size",
            help="size of a message, such as 32KB, or a range such as 4KB-256KB from which each "
            "phase draws one",
        ),
    ] = "",
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, help="iterations of the program")
    ] = 1,
    utilization: Annotated[
        float,
        typer.Option(
            "--utilization",
            help="share of the time that an undisturbed program communicates, above 0 and up to 1",
        ),
    ] = 1.0,
    rate: Annotated[
        float, typer.Option("--rate", help="speed of a host in Gbit/s, to compute that time from")
    ] = 100.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of what is drawn")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="file to write; without it, print the trace")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the messages of a well-known program as a trace, phase by phase."""
    from sar_agent.errors import InputError
    from sar_agent.util.text_files import write_text
    from sar_lab.research.trace.program_generators import PROGRAMS, ProgramOptions

    if program not in PROGRAMS:
        raise InputError(f"unknown program {program!r}", remedy=f"one of {', '.join(PROGRAMS)}")
    if not 0 < utilization <= 1 or rate <= 0:
        raise InputError(
            f"utilization {utilization:g} at {rate:g} Gbit/s is impossible",
            remedy="write, for example, 0.1 at 40 Gbit/s",
        )
    wish = ProgramOptions(ranks, jobs, _sizes(size), iterations, utilization, rate, seed)
    text = PROGRAMS[program](wish)
    if out is not None:
        write_text(out, text)
    if as_json:
        print_json(
            {"program": program, "trace": None if out else text, "written": out and str(out)}
        )
    elif out is None:
        typer.echo(text, nl=False)


def _sizes(text: str) -> tuple[float, float] | None:
    from sar_agent.errors import InputError
    from sar_lab.research.trace.units import size_of

    if not text:
        return None
    least, _, most = text.partition("-")
    smallest, largest = size_of(least), size_of(most or least)
    if smallest is None or largest is None or smallest > largest:
        raise InputError(f"{text!r} is not a size", remedy="write, for example, 32KB or 4KB-256KB")
    return smallest, largest
