"""The command line: the list of commands, in the groups of `--help`.

Exit codes are a contract: 0 success, 1 a check failed or another program did not answer, 2 bad
input. An error is one line on stderr; a traceback is a bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from sar_agent import __version__
from sar_agent.commands import (
    anonymize,
    ask,
    compare_counters,
    config_file,
    engines,
    key,
    rank_order,
    routes,
    service,
    topology,
)
from sar_agent.commands.program import Program
from sar_agent.errors import SarError
from sar_agent.util.extensions import extensions, load_point

OPERATE = "Operate the agent"
ROUTES = "Look at routes and topology (nothing is installed)"
APPLICATIONS = "For applications"
UNITS = "For units of systemd and cron (not in --help)"

app = Program(
    name="sar-agent",
    help="Scheduling-aware InfiniBand routes for Slurm clusters.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    (OPERATE, "run", service.run),
    (OPERATE, "once", service.once),
    (OPERATE, "status", ask.status),
    (OPERATE, "history", ask.history),
    (OPERATE, "explain", ask.explain),
    (OPERATE, "counters", compare_counters.counters),
    (OPERATE, "rollback", service.rollback),
    (OPERATE, "resume", service.resume),
    (ROUTES, "route", routes.route),
    (ROUTES, "measure", routes.measure),
    (ROUTES, "check", routes.check),
    (ROUTES, "engines", engines.engines),
    (ROUTES, "anonymize", anonymize.anonymize),
    (APPLICATIONS, "rank-order", rank_order.rank_order),
    (UNITS, "warm-up", service.warm_up),
    (UNITS, "fetch-state", service.fetch_state),
)
for panel, name, command in COMMANDS:
    app.command(name, rich_help_panel=panel, hidden=panel == UNITS)(command)
app.add_typer(config_file.app, rich_help_panel=OPERATE)
app.add_typer(topology.app, rich_help_panel=ROUTES)
app.add_typer(key.app, rich_help_panel=APPLICATIONS)
for extension in extensions("sar_agent.commands"):  # such as sar-lab's, if installed
    try:
        load_point(extension, "package of commands")(app)
    except SarError as error:  # another package's fault must not stop the agent
        print(f"sar-agent: {error}", file=sys.stderr)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"sar-agent {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


_REMEDIES: dict[type[OSError], str] = {
    FileExistsError: "; name a folder, not a file",
    NotADirectoryError: "; name a folder, not a file",
    PermissionError: "; name a place where you may write",
}


def main() -> None:
    """Entry point: turns errors that a user can act on into one line and an exit code."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.TyperException as error:
        # A usage error is one line, too, since it may end up in the log of a script. Without
        # arguments typer has printed the help, and the message is empty.
        if message := error.format_message():
            print(f"sar-agent: {message} See sar-agent --help", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)  # Ctrl-C
    except SarError as error:
        print(f"sar-agent: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # `sar-agent history | head`: the reader has closed the pipe, so nothing may be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        remedy = _REMEDIES.get(type(error), "")
        print(f"sar-agent: {error.filename}: {error.strerror}{remedy}", file=sys.stderr)
        sys.exit(2)
