"""ORCS's patterns, written out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sar_agent.errors import InputError
from sar_lab.research.orcs.level_schedule import schedule_of


def levels(pattern: str, ranks: int, first: int | None = None) -> list[str]:
    """Each level as `from>to` words."""
    s = schedule_of(pattern, ranks, first)
    words = [f"{a}>{b}" for a, b in zip(s.source, s.destination, strict=True)]
    return [" ".join(words[a:b]) for a, b in pairwise(s.level)]


@pytest.mark.parametrize(
    ("pattern", "ranks", "expected"),
    [
        ("bisect", 5, ["1>0 3>2"]),
        ("bisect_fb_sym", 5, ["0>1 1>0 2>3 3>2"]),
        ("gather", 4, ["1>0 2>0 3>0"]),
        ("scatter", 4, ["0>1 0>2 0>3"]),
        ("tree", 6, ["0>1", "0>2 1>3", "0>4 1>5"]),
        ("bruck", 3, ["0>1 1>2 2>0", "0>2 1>0 2>1"]),
        ("recdbl", 4, ["0>1 1>0 2>3 3>2", "0>2 2>0 1>3 3>1"]),
        ("recdbl", 6, ["0>1 1>0 2>3 3>2", "0>2 2>0 1>3 3>1", "0>4 1>5"]),
        ("ring", 3, ["0>1", "1>2", "2>0"]),
        ("alltoall", 3, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("null", 3, []),
        ("neighbor:1", 4, ["0>1 1>0 2>3 3>2"]),
        # 0 takes 1 and 2; 1 is full with 0 and 2; 3 finds nobody with a place free.
        ("neighbor:2", 4, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("neighbor:9", 3, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("tree", 1, []),
    ],
)
def test_levels(pattern: str, ranks: int, expected: list[str]) -> None:
    assert levels(pattern, ranks) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # b begins again with each level of a
        ("ring::gather", ["0>1 4>3", "1>2 4>3", "2>0 4>3"]),
        # what is left of b runs alone
        ("gather::ring", ["1>0 2>0 3>4", "4>3"]),
        # b is through after 2 levels, a has 3
        ("ring::ring", ["0>1 3>4", "1>2 4>3", "2>0 3>4", "4>3"]),
        ("null::ring", ["3>4", "4>3"]),
        ("ring::null", ["0>1", "1>2", "2>0"]),
        ("null::null", []),
    ],
)
def test_two_patterns_side_by_side(pattern: str, expected: list[str]) -> None:
    assert levels(pattern, 5, 3) == expected


@pytest.mark.parametrize(
    ("pattern", "first", "word"),
    [
        ("storm", None, "bisect_fb_sym"),
        ("gather::storm", 3, "storm"),
        ("gather::gather", None, "add -z K"),
        ("gather::gather", 5, "-z goes from 2 to 4"),
        ("gather", 1, "-z goes from 2 to 4"),
        ("neighbor", None, "neighbor:5"),
        ("neighbor:0", None, "neighbor:5"),
        ("neighbor:x", None, "neighbor:5"),
        ("gather:5", None, "no number"),
    ],
)
def test_wrong_words(pattern: str, first: int | None, word: str) -> None:
    with pytest.raises(InputError, match=word):
        schedule_of(pattern, 5, first)
