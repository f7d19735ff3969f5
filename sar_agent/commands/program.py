"""What the programs `sar-agent` and `sar-lab` share: `--help` for people, and how they end.

Exit codes are a contract: 0 success, 1 a check failed or another program did not answer, 2 bad
input. An error is one line on stderr; a traceback is a bug.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sar_agent import __version__
from sar_agent.commands.announce import name_program, note
from sar_agent.errors import SarError
from sar_agent.util.extensions import extensions, load_point

_REMEDIES: dict[type[OSError], str] = {
    FileExistsError: "; name a folder, not a file",
    NotADirectoryError: "; name a folder, not a file",
    PermissionError: "; name a place where you may write",
}


class Program(typer.Typer):
    """A group of commands whose `--help` has no types of flags (`<bool>`) and no bounds (`[x>=1]`).
    A value out of bounds is refused in a sentence; docs/reference/commands.md lists the bounds.

    Help is plain text: typer's boxes would take as long again as all the rest of `--help`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            cls=_Group,
            no_args_is_help=True,
            rich_markup_mode=None,
            add_completion=False,  # packages have a script for bash
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **settings)


class _Command(TyperCommand):
    def get_help_option(self, ctx: Any) -> Any:
        return _help_option(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _simplify(self, ctx)
        super().format_help(ctx, formatter)


class _Group(TyperGroup):
    def get_help_option(self, ctx: Any) -> Any:
        return _help_option(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _simplify(self, ctx)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Commands under their panels, in the order of their registration."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if not command.hidden:
                panel = panels.setdefault(
                    getattr(command, "rich_help_panel", None) or "Commands", []
                )
                panel.append((name, command.get_short_help_str(limit=1000)))
        for head, rows in panels.items():
            with formatter.section(head):
                formatter.write_dl(rows)


def _help_option(option: Any) -> Any:
    """The flag with a value: typer imports pydantic for one that is None."""
    option.default = False
    return option


def _simplify(command: Any, ctx: Any) -> None:
    """Takes types and bounds away. The process ends after its help, so nothing is parsed later."""
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "option" and parameter.metavar is None:
            kind = re.sub(r" range|list\[(\w+)\]", r"\1", parameter.display_type(ctx)).lower()
            parameter.metavar = "" if parameter.is_flag else kind
        parameter.min = parameter.max = None


def make_program(name: str, description: str) -> typer.Typer:
    """A program without commands."""
    app = Program(
        name=name,
        help=description,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )

    def print_version(requested: bool) -> None:
        if requested:
            typer.echo(f"{name} {__version__}")
            raise typer.Exit

    @app.callback()
    def _root(
        version: bool = typer.Option(
            False, "--version", callback=print_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        pass

    return app


def add_extensions(app: typer.Typer, group: str) -> None:
    """Adds the commands that installed packages register in `group`."""
    for extension in extensions(group):
        try:
            load_point(extension, "package of commands")(app)
        except SarError as error:  # another package's fault must not stop the program
            note(str(error))


def run_program(app: typer.Typer) -> None:
    """Runs the command line: an error that a user can act on is one line and an exit code."""
    name = str(app.info.name)
    name_program(name)
    # Our matrices are small, and threads that nobody uses took .02 to .06 s of each start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # Without a name, Typer takes that of how Python was started, several words for `python -m`.
        sys.exit(app(prog_name=name, standalone_mode=False))
    except typer.TyperException as error:
        # A usage error is one line, too, since it may end up in the log of a script. Without
        # arguments, the message is the help.
        message = error.format_message()
        if "\n" in message:
            print(message, file=sys.stderr)
        elif message:
            context = getattr(error, "ctx", None)  # of the command that was understood
            command = context.command_path if context else name
            note(f"{_sentence(message)} See {command} --help")
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)  # Ctrl-C
    except SarError as error:
        note(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # `sar-agent history | head`: the reader has closed the pipe, so nothing may be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        from sar_agent.util.kernel_cache import damage_of

        if damage := damage_of(error):
            note(damage)
            sys.exit(1)
        if not isinstance(error, OSError) or error.filename is None:
            raise
        note(f"{error.filename}: {error.strerror}{_REMEDIES.get(type(error), '')}")
        sys.exit(2)


def _sentence(message: str) -> str:
    """A usage error in plain words, with a stop at its end."""
    for bound, words in (("greater", "at least"), ("less", "at most")):
        message = re.sub(
            rf"Input should be {bound} than or equal to (\S+)", rf"give {words} \1", message
        )
    return message if message.endswith((".", "!", "?")) else f"{message}."
