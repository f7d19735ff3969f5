"""The command-line options of routing engines, made from the fields of `Options`.

`config/engine.py` declares each option once, with its type, default, bounds and description; the
TOML file takes them from there, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer
from annotated_types import DocInfo, Ge, Le

from sar_agent.config.engine import Options

NOT_OFFERED = ("partitions", "reserve_lane")
"""`partitions` is read from a file; `reserve_lane` matters only to the agent."""


def engine_option(name: str) -> Any:
    """The typer option for one field of `Options`."""
    field = next(field for field in fields(Options) if field.name == name)
    limits: dict[str, Any] = {}
    help = ""
    for note in get_args(field.type)[1:]:
        match note:
            case Ge(ge=least):
                limits["min"] = least
            case Le(le=most):
                limits["max"] = most
            case DocInfo(documentation=text):
                help = text
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(flag, help=help, **limits)


def with_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives `command` an option for every field of `Options`; it takes them as one keyword
    argument, `options`."""
    offered = [field for field in fields(Options) if field.name not in NOT_OFFERED]
    names = {field.name for field in offered}
    own = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)

    @wraps(command)
    def call(*positional: Any, **named: Any) -> None:
        chosen = {name: named.pop(name) for name in names & named.keys()}
        if chosen:
            named["options"] = Options(**chosen)
        command(*positional, **named)

    kept = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in own.parameters.items()
        if name != "options"
    ]
    parameters = [*kept[:-1], *map(_parameter, offered), kept[-1]]  # --json stays the last
    call.__dict__["__signature__"] = own.replace(parameters=parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(field: Field[Any]) -> inspect.Parameter:
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[get_args(field.type)[0], engine_option(field.name)],
    )
