"""The demo: two assessments of a generated fabric, side by side; README's picture is of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.command_line import said
from tests.worlds.strict_html import Strict

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, object]], Path]:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return said("demo", "--out", out, "--json"), out  # type: ignore[return-value]


def test_the_page_has_both_answers_and_leads_to_the_whole(
    demo: tuple[dict[str, dict[str, object]], Path],
) -> None:
    found, out = demo
    text = (out / "index.html").read_text()
    page = Strict(text)
    for name in ("scattered", "placed"):
        assert found[name]["verdict"]["sentence"] in page.text  # type: ignore[index]
        assert f'href="{name}/index.html"' in text
        whole = Strict((out / name / "index.html").read_text())
        assert found[name]["verdict"]["sentence"] in whole.text  # type: ignore[index]
    assert "url(" not in text and not any("src" in tag.split() for tag in text.split("<"))


def test_the_picture_of_the_readme_is_the_demos(
    demo: tuple[dict[str, dict[str, object]], Path],
) -> None:
    """`make demo; cp out/demo/scattered/collectives.svg docs/images/demo-collectives.svg`."""
    picture = ROOT / "docs/images/demo-collectives.svg"
    assert picture.read_text() == (demo[1] / "scattered/collectives.svg").read_text()
    assert "(docs/images/demo-collectives.svg)" in (ROOT / "README.md").read_text()
