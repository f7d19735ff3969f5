"""The pages' templates, with what they share."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """Of `lab/templates/`; a name that is missing is an error."""
    return Environment(
        loader=PackageLoader("sar_lab", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
