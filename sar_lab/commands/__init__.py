"""The commands of the laboratory, which `sar-agent` offers where the package `sar-lab` is
installed.

Heavy imports (numpy, numba, matplotlib) are inside the functions, so that `--help` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

OPERATE = "Operate the agent"
EVALUATE = "Evaluate: what would a cluster gain? (package sar-lab)"
RESEARCH = "Research: simulate, replay, reproduce papers (package sar-lab)"


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order of `--help`."""
    from sar_lab.commands import lab
    from sar_lab.commands.assess import assess
    from sar_lab.commands.count_congestion import count_congestion
    from sar_lab.commands.demo import demo
    from sar_lab.commands.demo_live import demo_live
    from sar_lab.commands.leave import leave
    from sar_lab.commands.make_trace import make_trace
    from sar_lab.commands.replay import replay
    from sar_lab.commands.simulate_time import simulate_time
    from sar_lab.commands.simulate_trace import simulate_trace

    app.command("leave", rich_help_panel=OPERATE)(leave)
    for name, command in (("assess", assess), ("demo", demo), ("demo-live", demo_live)):
        app.command(name, rich_help_panel=EVALUATE)(command)
    commands: tuple[tuple[str, Callable[..., None]], ...] = (
        ("replay", replay),
        ("simulate-time", simulate_time),
        ("simulate-trace", simulate_trace),
        ("make-trace", make_trace),
        ("count-congestion", count_congestion),
    )
    for name, command in commands:
        app.command(name, rich_help_panel=RESEARCH)(command)
    app.add_typer(lab.app, rich_help_panel=RESEARCH)
