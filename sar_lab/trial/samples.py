"""Medians of few samples, with intervals that assume nothing of their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import NamedTuple

AIM = 0.9


class Summary(NamedTuple):
    """The interval from the k-th smallest to the k-th largest sample covers the true median with
    probability `coverage`, the least above `AIM` or, with few samples, the largest there is."""

    samples: int
    median: float
    low: float
    high: float
    coverage: float


def summary(values: Sequence[float]) -> Summary | None:
    """None without a sample.

    >>> summary([3.0, 1.0, 2.0, 5.0, 4.0])
    Summary(samples=5, median=3.0, low=1.0, high=5.0, coverage=0.9375)
    """
    if not values:
        return None
    ordered, n, k = sorted(values), len(values), 1
    while 2 * (k + 1) <= n and _coverage(n, k + 1) >= AIM:
        k += 1
    return Summary(n, median(ordered), ordered[k - 1], ordered[n - k], max(0.0, _coverage(n, k)))


def _coverage(n: int, k: int) -> float:
    return 1.0 - sum(comb(n, i) for i in range(k)) / float(2 ** (n - 1))
