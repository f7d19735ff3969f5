"""The commands of the laboratory: `sar-agent` offers three where the package `sar-lab` is
installed, and the program `sar-lab` (`sar_lab/cli.py`) has the others.

Heavy imports (numpy, numba, matplotlib) are inside the functions, so that `--help` answers at once.
"""

from __future__ import annotations

import typer

OPERATE = "Operate the agent"
EVALUATE = "Evaluate: what would a cluster gain? (package sar-lab)"


def register(app: typer.Typer) -> None:
    """Adds the commands of `sar-agent`."""
    from sar_lab.commands.assess import assess
    from sar_lab.commands.demo import demo
    from sar_lab.commands.leave import leave

    app.command("leave", rich_help_panel=OPERATE)(leave)
    app.command("assess", rich_help_panel=EVALUATE)(assess)
    app.command("demo", rich_help_panel=EVALUATE)(demo)
