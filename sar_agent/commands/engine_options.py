"""The command-line options of routing engines, made from the fields of `Options`.

`config/engine.py` declares each option once, with its type, default, bounds and description; the
TOML file takes them from there, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, get_args

import typer
from annotated_types import DocInfo, Ge, Le

from sar_agent.commands.more_options import with_parameters
from sar_agent.config.engine import Options

NOT_OFFERED = ("partitions", "reserve_lane")
"""`partitions` is read from a file; `reserve_lane` matters only to the agent."""


def engine_option(name: str) -> Any:
    """The typer option for one field of `Options`."""
    field = next(field for field in fields(Options) if field.name == name)
    settings: dict[str, Any] = {}
    for note in get_args(field.type)[1:]:
        match note:
            case Ge(ge=least):
                settings["min"] = least
            case Le(le=most):
                settings["max"] = most
            case DocInfo(documentation=text):
                settings["help"] = text
    return typer.Option(f"--{name.replace('_', '-')}", **settings)


def with_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives `command` an option for every field of `Options`; it takes them as one keyword
    argument, `options`."""
    offered = [field for field in fields(Options) if field.name not in NOT_OFFERED]

    @wraps(command)
    def call(*positional: Any, **named: Any) -> None:
        chosen = {each.name: named.pop(each.name) for each in offered if each.name in named}
        if chosen:
            named["options"] = Options(**chosen)
        command(*positional, **named)

    more = (
        (each.name, each.default, Annotated[get_args(each.type)[0], engine_option(each.name)])
        for each in offered
    )
    return with_parameters(call, command, more, without="options")
