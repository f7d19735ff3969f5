"""The page *How rings stay apart* holds what its command prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_lab.research.rings_apart import (
    TRIED,
    Separated,
    entries_table,
    example,
    picture,
    tiny_messages,
    tried_table,
)

PAGES = Path(__file__).parents[2] / "sar_lab/research/pages"
PAGE = (PAGES / "rings-apart.md").read_text()


@pytest.fixture(scope="module")
def found() -> Separated:
    return example()


def test_the_entries_are_those_of_the_page(found: Separated) -> None:
    lines = entries_table(found)
    assert "\n\n" + "\n".join(lines) + "\n\n" in PAGE
    assert found.changed == len(lines) - 2, "each has a row"
    assert all("apart" in line for line in lines[2:]), "and a reason"


def test_the_picture_is_the_pages(found: Separated) -> None:
    assert (PAGES / "images/rings-apart.svg").read_text() == picture(found)
    assert "(images/rings-apart.svg)" in PAGE


def test_no_ring_waits_afterwards(found: Separated) -> None:
    before, after = found.sides()
    assert f"Of {before.waiting(found.limit)} jobs a message of the ring meets" in PAGE
    assert np.array_equal(np.unique(found.limit), [1]) and after.carried.max() == 1


@pytest.mark.parametrize(
    "tried",
    [pytest.param(one, marks=pytest.mark.long if "18" in one[0] else ()) for one in TRIED],
    ids=lambda one: f"{one[0]}-{one[1]}",
)
def test_rows_of_tried_fabrics_are_the_pages(tried: tuple[str, int]) -> None:
    head, rule, *rows = tried_table((tried,))
    assert f"{head}\n{rule}\n" in PAGE
    for row in rows:
        assert f"\n{row}\n" in PAGE


def test_the_counter_example_was_searched_exhaustively() -> None:
    assert tiny_messages() == (256, 2)
    assert "of all 256 ways to choose shortest paths the best has 2" in " ".join(PAGE.split())
