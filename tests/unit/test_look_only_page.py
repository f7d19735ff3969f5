"""docs/look-only.md: six questions, each with a command and a picture of what it answers today."""

from __future__ import annotations

import re

import pytest

from tests.worlds.look_only_pictures import IMAGES, PAGE, PICTURES, ROOT


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_its_command_answers(name: str) -> None:
    """`python -m tests.worlds.look_only_pictures` makes them again."""
    assert (IMAGES / name).read_text() == PICTURES[name]().svg()


def test_six_questions_six_commands_six_pictures() -> None:
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
    questions = [part for part in parts if part.splitlines()[0].endswith("?")]
    assert len(questions) == 6
    pictures = [re.findall(r"\(images/([\w-]+\.\w+)\)", part) for part in questions]
    assert pictures == [*([name] for name in PICTURES), ["assess-page.png"]]
    assert all("<!-- run -->\n```sh\nsar-agent " in part for part in questions)


def test_it_is_the_second_row_of_the_index_and_in_the_first_screen_of_the_readme() -> None:
    rows = [r for r in (ROOT / "docs/README.md").read_text().splitlines() if r.startswith("- [")]
    assert "(look-only.md)" in rows[1]
    assert "(docs/look-only.md)" in (ROOT / "README.md").read_text()[:1200]
