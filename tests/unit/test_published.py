"""What we say that the papers print is what they print."""

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
