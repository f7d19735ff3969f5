"""The program `sar-lab`: simulations, replays, the live demo, and research if installed."""

from __future__ import annotations

from sar_agent.commands.program import add_extensions, make_program, run_program
from sar_lab.commands.emulate import emulate
from sar_lab.commands.hours import hours
from sar_lab.commands.replay import replay
from sar_lab.commands.simulate_time import simulate_time

EVALUATE = "Evaluate without a cluster"

app = make_program("sar-lab", "The laboratory of sar-agent: simulate, replay, reproduce papers.")
app.command("emulate", rich_help_panel=EVALUATE)(emulate)
app.command("hours", rich_help_panel=EVALUATE)(hours)
app.command("replay", rich_help_panel=EVALUATE)(replay)
app.command("simulate-time", rich_help_panel=EVALUATE)(simulate_time)
add_extensions(app, "sar_lab.commands")


def main() -> None:
    """Entry point."""
    run_program(app)
