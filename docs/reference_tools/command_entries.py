"""Every command with its arguments and options, from the command line's own declarations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.main import get_command

from sar_agent.util.extensions import extensions

PROGRAMS = ("sar-agent", "sar-lab")
EXIT_CODES = {
    "0": "The command succeeded. `once` also if there was nothing to do.",
    "1": "A check failed, a pass failed, or another program (Slurm, OpenSM) did not answer. "
    "`topology check`: there are differences. `status --check`: a warning.",
    "2": "Bad input: a file, an option, a configuration key, a right that this user does not have. "
    "Nothing was written. `status --check`: critical.",
    "3": "`status --check` only: the state is not known.",
    "130": "Ctrl-C.",
}


@dataclass(frozen=True)
class CommandOption:
    """One option, or one argument if `names` has no dash."""

    names: tuple[str, ...]
    value: str
    """What its value is called, such as `FILE`; empty for a flag."""
    required: bool
    flag: bool
    repeatable: bool
    range: str
    default: str
    """Empty if there is none."""
    help: str


@dataclass(frozen=True)
class CommandEntry:
    """One command: `topology check` has two words."""

    program: str
    """`sar-agent` or `sar-lab`."""
    words: str
    panel: str
    """The group of `--help` in which it is listed."""
    help: str
    options: tuple[CommandOption, ...]


def command_entries() -> Iterator[CommandEntry]:
    """All commands that are installed, in the order of `--help`; sar-lab's if it is there."""
    for point in extensions("console_scripts"):
        if point.name in PROGRAMS:
            app = import_module(point.module).app
            yield from _commands(point.name, get_command(app), (), "")


def _commands(
    program: str, group: Any, words: tuple[str, ...], panel: str
) -> Iterator[CommandEntry]:
    for name, command in group.commands.items():
        own = panel or getattr(command, "rich_help_panel", None) or ""
        if hasattr(command, "commands"):
            yield from _commands(program, command, (*words, name), own)
        else:
            options = tuple(map(_option, command.params))
            yield CommandEntry(program, " ".join((*words, name)), own, command.help or "", options)


def _option(parameter: Any) -> CommandOption:
    low, high = parameter.min, parameter.max
    if low is not None and high is not None:
        bounds = f"{low:g} … {high:g}"
    else:
        bounds = f"{low:g} or more" if low is not None else ""
    flag = bool(getattr(parameter, "is_flag", False))
    return CommandOption(
        (*parameter.opts, *parameter.secondary_opts),
        "" if flag else str(parameter.metavar or parameter.name.replace("_", "-").upper()),
        parameter.required,
        flag,
        parameter.multiple or parameter.nargs == -1,
        bounds,
        _default(parameter.default),
        " ".join((parameter.help or "").split()),
    )


def _default(value: Any) -> str:
    match value:
        case None | "" | False:
            return ""
        case Enum():
            return str(value.value)
        case Path() | str() | bool() | int():
            return str(value)
        case float():
            return f"{value:g}"
    return ""
