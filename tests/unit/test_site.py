"""`make site`: all pages become one site, and every link and anchor in them leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "docs" / "site" / "build.py"


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BUILD), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "docs/troubleshooting.html", "docs/reference/errors.html"):
        assert (tmp_path / "site" / page).exists(), page


def test_broken_links_are_errors(tmp_path: Path) -> None:
    """In a copy of the repository's pages."""
    broken = ["nowhere.md", "README.md#no-such-heading", "images/none.png"]
    docs = tmp_path / "copy" / "docs"
    (docs / "site").mkdir(parents=True)
    for file in ("build.py", "site_slug.py", "site.css"):
        (docs / "site" / file).write_text((BUILD.parent / file).read_text())
    config = (BUILD.parent / "mkdocs.yml").read_text().split("\nnav:")[0]
    (docs / "site" / "mkdocs.yml").write_text(config + "\n")
    (tmp_path / "copy" / "README.md").write_text("# Start\n\n[docs](docs/README.md)\n")
    page = docs / "README.md"
    for targets, code in ((["../README.md#start"], 0), (broken, 1)):
        page.write_text("# Index\n\n" + "".join(f"[there]({target})\n" for target in targets))
        build = [sys.executable, str(docs / "site" / "build.py"), str(tmp_path / "out")]
        done = subprocess.run(build, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    for target in broken:
        assert target.split("#")[-1] in done.stderr


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
