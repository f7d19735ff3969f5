"""The documentation is run: marked shell blocks, what they print, the engine example, the links.

A fenced block after `<!-- run -->` is run with the tests' own Python in a folder that has the
repository's `docs`. A block after `<!-- prints -->` must equal the output of the run before it,
except for times. `<!-- file: NAME -->` is a file of the engine example.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.worlds.doc_blocks import blocks, run

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "*/FORMAT.md", "sar_lab/research/pages/*.md")
    for page in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ENGINE_PAGE = ROOT / "docs" / "add-an-engine.md"
SECONDS = re.compile(r"\d+\.\d+ s\b")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "<!-- run -->" in p.read_text()], ids=lambda p: p.name
)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    printed = ""
    for kind, argument, content in blocks(page):
        if kind == "run" and not argument:
            printed = run(content, tmp_path)
        elif kind == "prints":
            assert SECONDS.sub("… s", printed) == SECONDS.sub("… s", content)


def test_the_readme_and_the_how_to_are_run() -> None:
    """Without their markers the test above would pass on nothing."""
    for name, least in (("README.md", 1), ("docs/try-on-my-dumps.md", 6)):
        runs = [b for b in blocks(ROOT / name) if b[0] == "run"]
        assert len(runs) >= least, name


CONTENT = {f"{kind} {argument}": content for kind, argument, content in blocks(ENGINE_PAGE)}


@pytest.fixture
def first_engine(tmp_path: Path) -> Path:
    """The page's package, as pip would install it."""
    package = tmp_path / "package"
    dist = package / "first_engine-0.1.dist-info"
    dist.mkdir(parents=True)
    (package / "first_engine.py").write_text(CONTENT["file first_engine.py"])
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: first-engine\nVersion: 0.1\n")
    head, *points = CONTENT["file pyproject.toml"].splitlines()
    assert head == '[project.entry-points."sar_agent.engines"]'
    declared = "\n".join(point.replace('"', "") for point in points)
    (dist / "entry_points.txt").write_text(f"[sar_agent.engines]\n{declared}\n")
    return package


def test_the_engine_of_the_page_is_found_and_its_routes_pass(
    first_engine: Path, tmp_path: Path
) -> None:
    printed = run(CONTENT["run with first_engine"], tmp_path, first_engine)
    assert re.search(r"^first +the first shortest path", printed, re.MULTILINE)
    assert "first: 22 destinations on 6 switches" in printed
    assert "every pair reached, no credit loop" in printed


def test_a_stock_opensm_installs_the_tables_of_the_page(
    first_engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`measure` prints of what the switches hold what it prints of the tables that were given."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("IBSIM_SOCKNAME", f"docs-{os.getpid()}")
    for name in ("OSM_CACHE_DIR", "OSM_TMP_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    script = CONTENT["run with opensm"].replace("--routes tables", "--json --routes tables")
    assert script.count("--json") == 1
    printed = run(script, tmp_path, first_engine)
    held = json.loads(printed[printed.index("\n{") :])
    given = "sar-agent measure --fabric 'xgft:2;4,4;1,2' --jobs mix:3 --json --routes out/first"
    assert held == json.loads(run(given, tmp_path, first_engine))
    assert "Unicast lids" in (tmp_path / "tables").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.name}: {target}"
        assert path.is_relative_to(ROOT), f"{page.name}: {target} is outside the repository"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            assert anchor in slugs, f"{page.name}: {target}"


def test_there_are_links_and_pages() -> None:
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= {
        page.name for page in PAGES
    }
    assert sum(len(LINK.findall(page.read_text())) for page in PAGES) > 10
