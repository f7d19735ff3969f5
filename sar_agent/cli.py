"""The program `sar-agent`: the list of its commands, in the groups of `--help`."""

from __future__ import annotations

from collections.abc import Callable

from sar_agent.commands import (
    anonymize,
    archive,
    ask,
    cabling,
    config_file,
    engines,
    key,
    place,
    rank_order,
    routes,
    service,
    topology,
    what_if,
)
from sar_agent.commands.program import add_extensions, make_program, run_program

OPERATE = "Operate the agent"
ROUTES = "Look at routes, cables and topology (nothing is installed)"
APPLICATIONS = "For applications"
UNITS = "For units of systemd and cron (not in --help)"

app = make_program("sar-agent", "Scheduling-aware InfiniBand routes for Slurm clusters.")
COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    (OPERATE, "run", service.run),
    (OPERATE, "once", service.once),
    (OPERATE, "status", ask.status),
    (OPERATE, "history", ask.history),
    (OPERATE, "explain", ask.explain),
    (OPERATE, "rollback", service.rollback),
    (OPERATE, "resume", service.resume),
    (ROUTES, "route", routes.route),
    (ROUTES, "measure", routes.measure),
    (ROUTES, "check", routes.check),
    (ROUTES, "engines", engines.engines),
    (ROUTES, "cables", cabling.cables),
    (ROUTES, "link", cabling.link),
    (ROUTES, "path", cabling.path),
    (ROUTES, "what-if", what_if.what_if),
    (ROUTES, "place", place.place),
    (ROUTES, "anonymize", anonymize.anonymize),
    (APPLICATIONS, "rank-order", rank_order.rank_order),
    (UNITS, "warm-up", service.warm_up),
    (UNITS, "fetch-state", service.fetch_state),
    (UNITS, "send-state", archive.send_state),
    (UNITS, "serve-state", archive.serve_state),
)
for panel, name, command in COMMANDS:
    app.command(name, rich_help_panel=panel, hidden=panel == UNITS)(command)
app.add_typer(config_file.app, rich_help_panel=OPERATE)
app.add_typer(topology.app, rich_help_panel=ROUTES)
app.add_typer(key.app, rich_help_panel=APPLICATIONS)
add_extensions(app, "sar_agent.commands")  # such as sar-lab's, if installed


def main() -> None:
    """Entry point."""
    run_program(app)
