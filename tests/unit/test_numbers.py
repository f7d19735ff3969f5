"""Numbers in README.md and docs/ equal those that the commands print today. Times and memory
depend on the machine and are not compared; OpenSM's rows need OpenSM (`python -m tests.bench`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from sar_agent.jobs.synthetic import mix_of_spec, synthetic_mix
from sar_agent.quality import Measures
from sar_agent.routing import Options, engine_names, load_engine
from sar_lab.demo.engine_results import compare_engines
from sar_lab.fluid import PATTERNS, job_times
from tests.bench.bench_fabrics import fabric_of
from tests.worlds import assess_picture

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def tables(page: Path, heading: str) -> dict[str, list[dict[str, str]]]:
    """The table after each line that begins with `heading`, by the rest of that line: its rows, by
    the words of its head, without markup such as bold."""
    rows_by_heading: dict[str, list[dict[str, str]]] = {}
    for part in re.split(f"^{re.escape(heading)}", page.read_text(), flags=re.MULTILINE)[1:]:
        table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)
        assert table is not None, heading
        cells = [
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            for line in table[0].splitlines()
        ]
        rows = [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]
        rows_by_heading[part.split("\n")[0]] = rows
    return rows_by_heading


@pytest.fixture(scope="module")
def demo() -> dict[str, Measures]:
    """As `sar-agent demo` without options."""
    fabric = fabric_of("xgft:2;16,24;1,12")
    found = compare_engines(fabric, synthetic_mix(fabric, 1))
    return {result.engine: result.measures for result in found.results}


def test_the_readme_s_picture_is_what_demo_prints(demo: dict[str, Measures]) -> None:
    text = (ROOT / "README.md").read_text()
    before, after = demo["dfsssp"], demo["sar-plus"]
    assert f"one carries {before.effective_efi_max} job routes" in text
    assert f"none carries more than {after.effective_efi_max}." in text
    assert after.dark_fiber_ratio == 0 < before.dark_fiber_ratio
    picture = (DOCS / "images/before-after.svg").read_text()
    for measures in (before, after):
        assert f"hottest link {measures.effective_efi_max} job routes" in picture


def test_the_readme_s_table_is_what_simulate_time_prints() -> None:
    (spec,) = re.findall(r"simulate-time --fabric '(.+?)'", (ROOT / "README.md").read_text())
    (rows,) = tables(ROOT / "README.md", "Simulated by `sar-agent simulate-time").values()
    fabric = fabric_of(spec)
    order = {"at once": "alltoall", "in turn": "shift"}
    assert len(rows) == 4
    for row in rows:
        name, printed = row[""], {engine: row[engine] for engine in row if engine}
        jobs, how = re.fullmatch("`(.+)`, (.+)", name).groups()  # type: ignore[union-attr]
        mix = mix_of_spec(jobs, fabric)
        found = {}
        for engine in printed:
            routes = load_engine(engine).route(fabric, mix, Options())
            times = job_times(fabric, mix, routes, PATTERNS[order[how]]).summary()
            found[engine] = f"{times['time_mean']:.2f} ({times['time_worst']:.2f})"
        assert printed == found, name


def test_the_readme_s_picture_of_assess_shows_what_assess_makes(tmp_path: Path) -> None:
    """The caption is the page's first sentence; `python -m tests.worlds.assess_picture` makes the
    picture again."""
    printed = assess_picture.make_page(tmp_path).splitlines()
    (caption,) = re.findall(r"!\[The page: (.+?)\]", (ROOT / "README.md").read_text())
    assert caption in printed
    picture = Image.open(assess_picture.PICTURE)
    assert picture.info[assess_picture.WORDS] == assess_picture.shown_words(tmp_path)


def test_the_number_of_engines_is_the_list_s() -> None:
    words = {19: "nineteen", 20: "twenty", 21: "twenty-one", 22: "twenty-two"}
    assert f"[{words[len(engine_names())]}](engines.md)" in (DOCS / "README.md").read_text()
