"""Commands of the group `demo`."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds them."""
