"""The command line: one command per thing a person wants, each in a file of `commands/`.

Exit codes are a contract: 0 done, 1 a check failed or somebody did not answer, 2 bad input. An
error is one line on stderr; a traceback is a bug.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points

import typer

from sar_agent import __version__
from sar_agent.commands import engines, key, routes, service, topology
from sar_agent.errors import SarError

app = typer.Typer(
    name="sar-agent",
    help="Scheduling-aware InfiniBand routes for Slurm clusters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (service, topology, routes, engines, key):  # in the order of `--help`
    module.register(app)
for extension in entry_points(group="sar_agent.commands"):  # the laboratory's, where installed
    extension.load()(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sar-agent {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True),
) -> None:
    pass


def main() -> None:
    """Entry point: errors a person can act on become one line and an exit code."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.TyperException as error:
        # A usage error in a script's log is one line, too, not a box; without arguments the help
        # was printed and there is nothing to add.
        if message := error.format_message():
            print(f"sar-agent: {message} See sar-agent --help", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)  # Ctrl-C
    except SarError as error:
        print(f"sar-agent: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # `sar-agent history | head`: the reader had enough. Nothing may be flushed any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        print(f"sar-agent: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
