"""`sar-lab demo-live`: the agent at work in one terminal."""

from __future__ import annotations

import typer


def demo_live() -> None:
    """Run the agent with real OpenSM and Slurm on a simulated fabric, and narrate what happens."""
    from sar_lab.demo_live import demo_live as play

    raise typer.Exit(play())
