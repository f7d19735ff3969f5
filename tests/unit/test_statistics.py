"""Intervals that hold what they say."""

from __future__ import annotations

import pytest

from sar_lab.statistics import caption, median_of


def test_few_draws_say_so():
    assert median_of([3.0, 1.0, 2.0, 5.0, 4.0]).confidence == pytest.approx(1 - 2 / 2**5)
    alone = median_of([7.0])
    assert (alone.low, alone.high, alone.confidence) == (7.0, 7.0, 0.0)
    assert alone.words() == "7.00"


def test_apart():
    assert median_of(range(10)).apart_from(median_of(range(20, 30)))
    assert not median_of(range(10)).apart_from(median_of(range(5, 15)))


@pytest.mark.parametrize("draws", [[], [1.0, float("nan")]])
def test_no_numbers(draws):
    with pytest.raises(ValueError, match="at least one finite number"):
        median_of(draws)


def test_caption():
    words = caption("sar-agent lab run x", [1, 2, 3, 7], median_of(range(10)))
    assert words == (
        "medians of 10 draws with 98 % confidence intervals (order statistics); "
        "seeds 1 … 3, 7; made by `sar-agent lab run x`"
    )
