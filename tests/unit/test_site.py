"""Pages: `make site` makes one site of all, every link and anchor in them leads somewhere, files
that a page names (`routing/dag.py`) exist, and README's table of results is what its command
prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.worlds.command_line import lab_said

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "docs" / "site" / "build.py"


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BUILD), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "docs/troubleshooting.html", "docs/reference/errors.html"):
        assert (tmp_path / "site" / page).exists(), page


def test_every_page_of_docs_is_in_the_navigation_and_the_index() -> None:
    config = (BUILD.parent / "mkdocs.yml").read_text().replace("!!python/name:", "")
    listed = set(_pages_of(yaml.safe_load(config)["nav"]))
    assert all((ROOT / page).exists() for page in listed)
    index = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").as_posix()
        assert path in ("README.md", "reference/README.md") or (
            f"({path}" in index and f"docs/{path}" in listed
        ), path


def test_every_page_of_docs_leads_to_the_index_and_the_glossary() -> None:
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        path = page.relative_to(docs)
        if path.as_posix() not in ("README.md", "glossary.md"):
            up = "../" * (len(path.parts) - 1)
            line = f"[All pages]({up}README.md) · [Glossary]({up}glossary.md)"
            assert line in page.read_text().splitlines()[:5], f"{path}: its third line is {line}"


def _pages_of(entries: object) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    values = entries.values() if isinstance(entries, dict) else entries
    assert isinstance(values, list) or hasattr(values, "__iter__")
    return [page for value in values for page in _pages_of(value)]


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


README = (ROOT / "README.md").read_text()
ENGINES = re.findall(r"\w[\w-]*", next(re.finditer(r"^\| \| minhop .*$", README, re.M))[0])
ROWS = re.findall(r"^\| `mix:1.*\|$", README, re.M)
PATTERNS = {"at once": "alltoall", "in turn": "shift"}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_simulate_time_prints(row: str) -> None:
    name, *printed = (cell.strip() for cell in row.strip("|").split("|"))
    match = re.fullmatch(r"`(.+)`, (.+)", name)
    assert match and len(ENGINES) == len(printed) == 6
    given = [word for engine in ENGINES for word in ("--engine", engine)]
    answer: Any = lab_said(
        "simulate-time", "--fabric", "xgft:2;16,24;1,12", "--jobs", match[1],
        "--pattern", PATTERNS[match[2]], *given, "--json",
    )  # fmt: skip
    found = {each["engine"]: each for each in answer["results"]}
    assert printed == [
        f"{found[engine]['time_mean']:.2f} ({found[engine]['time_worst']:.2f})"
        for engine in ENGINES
    ]
