"""Shell blocks of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

BLOCK = re.compile(r"^<!-- (run|prints|file)(?:: (.+?))? -->\n```\w*\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(kind, argument, content) in the order of the page."""
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(page.read_text())]
