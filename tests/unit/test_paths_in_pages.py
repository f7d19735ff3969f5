"""Files that a page names in its text, such as `routing/dag.py`, exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in (
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/**/*.md",
        "sar_lab/research/pages/*.md",
    )
    for page in ROOT.glob(pattern)
)
NAME = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|c|h|txt|toml|md))`")
ROOMS = (ROOT, ROOT / "sar_agent", ROOT / "sar_lab")
WRITTEN_BY_A_READER = ("out/",)


def missing(text: str) -> list[str]:
    """The names of files in `text` that neither the repository nor a package has."""
    return [
        name
        for name in NAME.findall(text)
        if not name.startswith(WRITTEN_BY_A_READER)
        and not any((folder / name).exists() for folder in ROOMS)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_a_file_that_does_not_exist_is_found() -> None:
    assert missing("`routing/dag2.py`, `out/cg.txt`, `docs/lanes.md`") == ["routing/dag2.py"]
