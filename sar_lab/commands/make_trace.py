"""`sar-agent make-trace`: a program as a trace that `simulate --trace` plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command("make-trace")
    def make_trace(
        program: Annotated[str, typer.Argument(help="alltoall, cartesian, cgd128, wrf256")],
        ranks: Annotated[
            int, typer.Option("--ranks", min=0, help="of each job; 0: the program's own")
        ] = 0,
        jobs: Annotated[int, typer.Option("--jobs", min=1, help="how many beside each other")] = 1,
        size: Annotated[
            str,
            typer.Option("--size", help="of a message: 32KB, or drawn for each phase: 4KB-256KB"),
        ] = "",
        iterations: Annotated[int, typer.Option("--iterations", min=1)] = 1,
        utilization: Annotated[
            float,
            typer.Option(
                "--utilization", help="above 0 … 1: share of the time in communication, undisturbed"
            ),
        ] = 1.0,
        rate: Annotated[
            float, typer.Option("--rate", help="Gbit/s of a host, which says how long that takes")
        ] = 100.0,
        seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
        out: Annotated[Path | None, typer.Option("--out", help="file; else it is printed")] = None,
    ) -> None:
        """Write a well-known program as a trace: who sends how much to whom, phase after phase."""
        from sar_agent.errors import InputError
        from sar_agent.util.text_files import write_text
        from sar_lab.trace.program_generators import PROGRAMS, ProgramOptions

        if program not in PROGRAMS:
            raise InputError(
                f"no program is called {program!r}", remedy=f"one of {', '.join(PROGRAMS)}"
            )
        if not 0 < utilization <= 1 or rate <= 0:
            raise InputError(
                f"utilization {utilization:g} at {rate:g} Gbit/s", remedy="0.1 at 40, for example"
            )
        wish = ProgramOptions(ranks, jobs, _sizes(size), iterations, utilization, rate, seed)
        text = PROGRAMS[program](wish)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write_text(out, text)


def _sizes(text: str) -> tuple[float, float] | None:
    from sar_agent.errors import InputError
    from sar_lab.trace.units import size_of

    if not text:
        return None
    least, _, most = text.partition("-")
    both = size_of(least), size_of(most or least)
    if both[0] is None or both[1] is None or both[0] > both[1]:
        raise InputError(f"size {text!r}", remedy="e.g. 32KB or 4KB-256KB")
    return both[0], both[1]
