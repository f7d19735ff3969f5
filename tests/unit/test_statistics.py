"""Intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from sar_lab.research.statistics import bootstrap_of, caption, median_of


def test_known_ranks():
    """As in tables of the binomial: of 10 the 2nd and 9th, of 20 the 6th and 15th, of 40 14, 27."""
    for n, low, high in ((10, 2, 9), (20, 6, 15), (40, 14, 27)):
        found = median_of(range(1, n + 1))
        assert (found.low, found.high) == (low, high)
        assert 0.95 <= found.confidence < 0.98


def test_few_draws_say_so():
    assert median_of([3.0, 1.0, 2.0, 5.0, 4.0]).confidence == pytest.approx(1 - 2 / 2**5)
    alone = median_of([7.0])
    assert (alone.low, alone.high, alone.confidence) == (7.0, 7.0, 0.0)
    assert alone.words() == "7.00"


def test_coverage_is_what_is_said():
    random = np.random.default_rng(1)
    intervals = [median_of(random.exponential(size=15)) for _ in range(2000)]
    held = np.mean([one.low <= np.log(2) <= one.high for one in intervals])
    assert held == pytest.approx(intervals[0].confidence, abs=0.015)


def test_bootstrap_agrees_with_theory_and_with_itself():
    draws = np.random.default_rng(2).normal(10.0, 2.0, 200)
    found = bootstrap_of(draws, lambda x: float(x.mean()), seed=3)
    half = 1.96 * draws.std(ddof=1) / np.sqrt(200)
    assert found.low == pytest.approx(draws.mean() - half, abs=0.04)
    assert found.high == pytest.approx(draws.mean() + half, abs=0.04)
    # The order of draws, like that of workers, must not matter.
    assert bootstrap_of(draws[::-1], lambda x: float(x.mean()), seed=3) == found


def test_apart():
    assert median_of(range(10)).apart_from(median_of(range(20, 30)))
    assert not median_of(range(10)).apart_from(median_of(range(5, 15)))


@pytest.mark.parametrize("draws", [[], [1.0, float("nan")]])
def test_no_numbers(draws):
    with pytest.raises(ValueError, match="at least one finite number"):
        median_of(draws)


def test_caption():
    words = caption("sar-lab lab run x", [1, 2, 3, 7], median_of(range(10)))
    assert words == (
        "medians of 10 draws with 98 % confidence intervals (order statistics); "
        "seeds 1 … 3, 7; made by `sar-lab lab run x`"
    )
