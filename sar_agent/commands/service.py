"""Commands of the group `service`."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds them."""
