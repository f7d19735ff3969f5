"""`sar-agent demo-live`: the real loop in one terminal."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command("demo-live")
    def demo_live() -> None:
        """The whole loop on real parts (ibsim, OpenSM, Slurm, the agent), told as it happens."""
        from sar_lab.demo_live import demo_live as play

        raise typer.Exit(play())
