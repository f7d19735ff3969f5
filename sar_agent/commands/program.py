"""What the programs `sar-agent` and `sar-lab` share: their version, and how they end.

Exit codes are a contract: 0 success, 1 a check failed or another program did not answer, 2 bad
input. An error is one line on stderr; a traceback is a bug.
"""

from __future__ import annotations

import os
import sys

import typer

from sar_agent import __version__
from sar_agent.commands.announce import name_program, note
from sar_agent.errors import SarError
from sar_agent.util.extensions import extensions, load_point

_REMEDIES: dict[type[OSError], str] = {
    FileExistsError: "; name a folder, not a file",
    NotADirectoryError: "; name a folder, not a file",
    PermissionError: "; name a place where you may write",
}


def make_program(name: str, description: str) -> typer.Typer:
    """A program without commands."""
    app = typer.Typer(
        name=name,
        help=description,
        no_args_is_help=True,
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
    name_program(str(app.info.name))
    try:
        sys.exit(app(standalone_mode=False))
    except typer.TyperException as error:
        # A usage error is one line, too, since it may end up in the log of a script. Without
        # arguments typer has printed the help, and the message is empty.
        if message := error.format_message():
            note(f"{message} See {app.info.name} --help")
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)  # Ctrl-C
    except SarError as error:
        note(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # `sar-agent history | head`: the reader has closed the pipe, so nothing may be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        note(f"{error.filename}: {error.strerror}{_REMEDIES.get(type(error), '')}")
        sys.exit(2)
