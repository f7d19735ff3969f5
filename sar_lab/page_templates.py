"""The Jinja environment of all page templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sar_agent.util.plural import plural


def templates() -> Environment:
    """The templates of `sar_lab/templates/`; an undefined name in one is an error."""
    made = Environment(
        loader=PackageLoader("sar_lab", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["plural"] = plural
    return made


def write_page(folder: Path, numbers: str, found: dict[str, Any], html: str) -> Path:
    """Writes `index.html` and its `numbers`, a JSON file, to `folder` (created if needed); returns
    the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / numbers).write_text(json.dumps(found, indent=1) + "\n")
    page = folder / "index.html"
    page.write_text(html)
    return page
