"""A claim of a paper's row is judged by its own words: no other way of writing one is open to a
row, and an exchanged direction, number or number of places is another judgement."""

from __future__ import annotations

from sar_lab.research.papers.worded_claims import (
    PLAIN,
    Draws,
    judged,
)


def seeds(level: float) -> list[float]:
    return [level * (1 + 0.001 * k) for k in range(6)]


def test_numbers_and_places_are_read_from_the_words() -> None:
    some: dict[str, list[Draws]] = {"A": [1.0, 2.0, 3.0, 4.0], "B": [2.0, 1.0, 1.0, 1.0]}
    for words, holds in (
        ("A above B", False),
        ("A above B at every w2", False),
        ("A above B at most w2", True),
        ("A below B at most w2", False),
        ("A above B at all but 1 w2", True),
        ("A above B at all but 0 w2", False),
        ("A below B on one tree at least", True),
        ("A above 4 on one tree at least", False),
        ("A never above B", False),
        ("A never above 4", True),
        ("A not above B", False),
        ("A above 0.5, and B below 2.5", True),
        ("A above 0.5, and B below 1.5", False),
        ("A equals B", False),
        ("A equals A at every w2", True),
    ):
        assert judged(words, some, PLAIN).holds is holds, words
    claim = judged("A above B at all but 1 w2", some, PLAIN)
    assert claim.order and claim.ours == "at 3 of 4" and claim.published == "yes"
    curve: dict[str, list[Draws]] = {"A": [[1.0, 2.0, 3.0]], "G": [seeds(0.1)]}
    assert judged("A grows with hosts", curve).holds and not judged("A falls with it", curve).holds
    assert judged("G is better", curve).holds and judged("G is worse", curve).holds is False


def number(text: str) -> float:
    return float(text.replace(",", ""))
