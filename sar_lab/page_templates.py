"""The Jinja environment of all page templates."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """The templates of `sar_lab/templates/`; an undefined name in one is an error."""
    return Environment(
        loader=PackageLoader("sar_lab", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
