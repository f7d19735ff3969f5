"""The option that all commands of the agent share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path, typer.Option("--config", help="the TOML file; deploy/sar-agent.toml explains every key")
]
DEFAULT = Path("/etc/sar-agent.toml")
