"""The application class of the programs: typer's, with a `--help` for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Program(typer.Typer):
    """A group of commands whose `--help` has no types of flags (`<bool>`) and no bounds (`[x>=1]`).
    A value out of bounds is refused in a sentence; docs/reference/commands.md lists the bounds."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **settings)


class _Command(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        _simplify(self, ctx)
        super().format_help(ctx, formatter)


class _Group(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        _simplify(self, ctx)
        super().format_help(ctx, formatter)


def _simplify(command: Any, ctx: Any) -> None:
    """Takes types and bounds away. The process ends after its help, so nothing is parsed later."""
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "option" and parameter.metavar is None:
            kind = parameter.display_type(ctx).replace(" range", "")
            parameter.metavar = "" if parameter.is_flag else kind
        parameter.min = parameter.max = None
