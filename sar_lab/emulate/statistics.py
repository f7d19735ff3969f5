"""Times on several tables: medians of few samples with intervals that assume nothing of their
distribution, and tables compared within rounds.

What changes slowly on a machine changes all tables of a round alike, so a table is compared with
the first one round by round. `sar-agent trial` uses the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import median, pstdev
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


class Compared(NamedTuple):
    """One set of tables under one program."""

    values: tuple[float, ...]
    """In the order of rounds; a round may be missing."""
    timed: Summary | None
    spread: float
    """Standard deviation over median; 0 without two values."""
    ratio: Summary | None
    """Of the time over that on the first tables in the same round; None for these."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the ratio is on one side of 1, from rounds enough to say so."""
        ratio = self.ratio
        return bool(ratio and ratio.coverage >= AIM and (ratio.high < 1 or ratio.low > 1))


def compare(times: Mapping[str, Mapping[int, float]]) -> dict[str, Compared]:
    """By tables; `times` are by tables and round, all above 0. The first tables are the base.

    >>> compare({"a": {1: 2.0, 2: 4.0}, "b": {2: 2.0, 3: 1.0}})["b"].ratio.median
    0.5
    """
    base = next(iter(times), "")
    found = {}
    for name, of_round in times.items():
        values = [of_round[number] for number in sorted(of_round)]
        ratios = [
            value / times[base][number]
            for number, value in of_round.items()
            if number in times[base]
        ]
        found[name] = Compared(
            tuple(values),
            summary(values),
            pstdev(values) / median(values) if len(values) > 1 else 0.0,
            None if name == base else summary(ratios),
        )
    return found
