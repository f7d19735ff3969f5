"""The folder of a demo: the page, its picture as a separate file, and the numbers."""

from __future__ import annotations

import json
from pathlib import Path

from sar_lab.demo.demo_page import render_page, render_picture
from sar_lab.demo.demo_run import Demo


def write_demo(demo: Demo, folder: Path) -> Path:
    """Writes `index.html`, `before-after.svg` and `numbers.json`; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "numbers.json").write_text(json.dumps(demo.json(), indent=1) + "\n")
    if picture := render_picture(demo):
        (folder / "before-after.svg").write_text(picture)
    page = folder / "index.html"
    page.write_text(render_page(demo))
    return page
