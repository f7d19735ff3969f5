"""Numbers in README.md and docs/ equal those that the commands print today. Times and memory
depend on the machine and are not compared; OpenSM's rows need OpenSM (`python -m tests.bench`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality import Measures
from sar_agent.routing import engine_names
from sar_lab.demo.engine_results import compare_engines
from tests.bench.bench_fabrics import fabric_of

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


def test_the_readme_s_table_is_what_demo_prints(demo: dict[str, Measures]) -> None:
    text = (ROOT / "README.md").read_text()
    assert "on a synthetic fabric (`xgft:2;16,24;1,12`) and job mix (`mix:1`)" in text
    (rows,) = tables(ROOT / "README.md", "Measured by `sar-agent demo`").values()
    dark, hottest, mean, worst = rows
    for engine, measures in demo.items():
        assert dark[engine] == f"{measures.dark_fiber_ratio:.1%}", engine
        assert hottest[engine] == str(measures.effective_efi_max), engine
        assert mean[engine] == f"{measures.throughput_mean:.2f}", engine
        assert worst[engine] == f"{measures.throughput_min:.2f}", engine
    assert hottest["lower bound"] == str(demo["sar-plus"].lower_bound_efi_max)
    assert list(dark) == ["", *demo, "lower bound"]
    before, after = demo["dfsssp"], demo["sar-plus"]
    assert f"one carries {before.effective_efi_max} job routes" in text
    assert f"none carries more than {after.effective_efi_max}." in text


def test_the_number_of_engines_is_the_list_s() -> None:
    words = {19: "nineteen", 20: "twenty", 21: "twenty-one", 22: "twenty-two"}
    assert f"[{words[len(engine_names())]}](engines.md)" in (DOCS / "README.md").read_text()


def test_the_readme_has_at_most_500_words_and_its_status_comes_first() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(re.findall(r"\S*\w\S*", text)) <= 500
    assert text.index("Never run on a") < text.index("![") < text.index("\n## ")
