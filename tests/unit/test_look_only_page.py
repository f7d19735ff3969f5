"""docs/look-only.md: six questions, each with a command and a picture of what it answers today."""

from __future__ import annotations

import pytest

from tests.worlds.look_only_pictures import IMAGES, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_its_command_answers(name: str) -> None:
    """`python -m tests.worlds.look_only_pictures` makes them again."""
    assert (IMAGES / name).read_text() == PICTURES[name]().svg()
