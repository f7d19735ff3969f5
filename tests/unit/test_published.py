"""What we say that the papers print is what they print; and comparisons of claims: an exchanged
direction, factor or number of places is another judgement."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sar_lab.research.papers.compared import (
    MEANS,
    MEDIANS,
    PAIRED,
    PLAIN,
    Compared,
    Held,
    all_but,
    claim,
    compared,
    falls,
    grows,
    is_gain,
    most,
    never,
)
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
from sar_lab.research.papers.registry import EMULATED, experiments
from sar_lab.research.papers.result_store import PAGES, stored_result

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
    for name, one in experiments().items():
        if one.kind == EMULATED and stored_result(PAGES, name) is None:
            continue
        row = json.loads((HERE / f"sar_lab/research/pages/reproduction/{name}.json").read_text())
        for each in row["ours"]["claims"]:
            assert each["said"] in known, f"{name}: {each['says']}"
            assert each["kind"] == known[each["said"]].kind
            used.add(each["said"])
    inputs = {"sar-fig1", "sar-times", "pftree-table3"}
    unused = {q.name for q in QUOTES if q.kind in THEIRS} - used
    assert {name.partition(".")[0] for name in unused} <= inputs, sorted(unused)


def seeds(level: float) -> list[float]:
    return [level * (1 + 0.001 * k) for k in range(6)]


def test_a_comparison_holds_at_the_places_that_it_says() -> None:
    n = compared({"A": [1.0, 2.0, 3.0, 4.0], "B": [2.0, 1.0, 1.0, 1.0]}, PLAIN)
    a, b = n["A"], n["B"]
    cases: tuple[tuple[Held, bool], ...] = (
        (a > b, False),
        (b < a, False),
        (most(a > b), True),
        (most(a < b), False),
        (all_but(1, a > b), True),
        (all_but(0, a > b), False),
        (never(a > b), False),
        (never(a > 4), True),
        (a.not_above(b), False),
        (b.not_above(2), True),
        (a > 0.5, True),
        (b < 2.5, True),
        (b < 1.5, False),
        (4 * a > b, True),
        (2 * a > b, False),
        (a > 0.4 * b, True),
        (b < 3 * a, True),
        (b < 2 * a, False),
        (a.equals(b), False),
        (a.equals(a), True),
        (a.within(0.7, 2.5), True),
        (a.within(0.5, 2.5), False),
    )
    for k, (held, holds) in enumerate(cases):
        assert held.holds is holds, k
    found = claim(all_but(1, a > b), "A above B at all but 1 w2")
    assert found.order and (found.ours, found.published) == ("at 3 of 4", "yes")
    assert claim(never(a > b), "A never above B").ours == "at 1 of 4"
    assert grows([[1.0, 2.0, 3.0]]).holds and not falls([[1.0, 2.0, 3.0]]).holds
    assert not grows([[1.0, 2.0], [2.0, 2.0]]).holds
    assert is_gain(seeds(0.1)).holds and is_gain(seeds(-0.1)).holds is False


def test_what_seeds_do_not_tell_apart_does_not_hold() -> None:
    same, more = [1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.8]
    for judge in (PAIRED, MEDIANS, MEANS):
        one, other = Compared([same], judge), Compared([more], judge)
        for held in (one > other, one < other, one.not_above(other)):
            assert held.holds is None, judge
        assert (Compared([seeds(3.0)], judge) > Compared([seeds(1.0)], judge)).holds
    assert is_gain([-1.0, 1.0, -2.0, 2.0]).holds is None
