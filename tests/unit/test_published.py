"""What we say that the papers print is what they print, and a claim of a paper's row is judged by
its own words: an exchanged direction, number or number of places is another judgement."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sar_lab.research.papers.published import (
    DERIVED,
    ERRATUM,
    PAPERS,
    PRINTED,
    READ_OFF,
    THEIRS,
    Quote,
    all_quotes,
)  # fmt: skip
from sar_lab.research.papers.registry import experiments
from sar_lab.research.papers.worded_claims import (
    PLAIN,
    Draws,
    judged,
)

HERE = Path(__file__).parents[2]
TEXTS = Path(os.environ.get("SAR_PAPERS", HERE.parent / "shared" / "papers"))
QUOTES = [quote for some in all_quotes().values() for quote in some.values()]


def letters(text: str) -> str:
    """Without spaces and marks, as hyphens at ends of lines, markup and minus signs differ."""
    text = re.sub(r"(?<=[A-Za-z)])-\s+(?=[a-z])", "", text)
    return re.sub(r"[^a-z0-9.%/]", "", text.lower())


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote.name)
def test_a_quote_is_in_the_text_of_its_paper(quote: Quote) -> None:
    assert quote.kind in (PRINTED, READ_OFF, ERRATUM, DERIVED)
    assert bool(quote.why) == (quote.kind == ERRATUM)
    if quote.kind == DERIVED or quote.source:
        return
    assert quote.place
    file = TEXTS / f"{quote.paper}.txt"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    text, at = letters(file.read_text()), 0
    for part in quote.words.split(" … "):
        at = text.find(letters(part), at)
        assert at >= 0, f"{quote.name}: {part!r}"


def test_every_claim_of_a_row_points_to_a_quote() -> None:
    assert {quote.paper for quote in QUOTES if not quote.source} == set(PAPERS.values())
    known = {quote.name: quote for quote in QUOTES}
    used = set()
    for name in experiments():
        row = json.loads((HERE / f"sar_lab/research/pages/reproduction/{name}.json").read_text())
        for claim in row["ours"]["claims"]:
            assert claim["said"] in known, f"{name}: {claim['says']}"
            assert claim["kind"] == known[claim["said"]].kind
            used.add(claim["said"])
    inputs = {"sar-fig1", "sar-times", "pftree-table3"}
    unused = {q.name for q in QUOTES if q.kind in THEIRS} - used
    assert {name.partition(".")[0] for name in unused} <= inputs, sorted(unused)


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
