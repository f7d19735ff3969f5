"""The commands of research, which `sar-lab` offers: its entry-point group `sar_lab.commands`."""

from __future__ import annotations

import typer

RESEARCH = "Research: reproduce papers, simulate messages and programs"


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order of `--help`."""
    from sar_lab.research.commands import lab
    from sar_lab.research.commands.count_congestion import count_congestion
    from sar_lab.research.commands.make_trace import make_trace
    from sar_lab.research.commands.packets import packets
    from sar_lab.research.commands.simulate_trace import simulate_trace

    app.command("simulate-trace", rich_help_panel=RESEARCH)(simulate_trace)
    app.command("make-trace", rich_help_panel=RESEARCH)(make_trace)
    app.command("packets", rich_help_panel=RESEARCH)(packets)
    app.command("count-congestion", rich_help_panel=RESEARCH)(count_congestion)
    app.add_typer(lab.app, rich_help_panel=RESEARCH)
