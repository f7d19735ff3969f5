"""The commands of the laboratory; `sar-agent` shows them where the package `sar-lab` is installed.

Heavy imports (numba, matplotlib) stay inside the functions, so that `--help` answers at once.
"""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds all of them, in the order of `--help`."""
    from sar_lab.commands import assess, demo, lab, live, make_trace, replay, simulate

    for module in (assess, demo, live, simulate, make_trace, replay, lab):
        module.register(app)
