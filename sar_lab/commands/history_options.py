"""Options of commands that read a job history: which part of it."""

from __future__ import annotations

from typing import Annotated

import typer

CLOCK = "by the clock of the record; where it has seconds since 1970, in your time zone"
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="DATE", help=f"first moment, such as 2024-01-01, {CLOCK}"),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="DATE", help="last moment, such as 2024-01-31T12:00"),
]
