"""The folder of a demo: the page, its picture as a separate file, and the numbers."""

from __future__ import annotations

from pathlib import Path

from sar_lab.demo.demo_page import render_page, render_picture
from sar_lab.demo.demo_run import Demo
from sar_lab.page_templates import write_page


def write_demo(demo: Demo, folder: Path) -> Path:
    """Writes `index.html`, `before-after.svg` and `numbers.json`; returns the page's path."""
    page = write_page(folder, "numbers.json", demo.json(), render_page(demo))
    if picture := render_picture(demo):
        (folder / "before-after.svg").write_text(picture)
    return page
