"""Numbers that differ from seed to seed: medians with confidence intervals.

`median_of` assumes nothing of the distribution: the number of draws below the median is binomial,
so two of the sorted draws bracket it with a known confidence (Hoefler and Belli, *Scientific
benchmarking of parallel computing systems*, SC15, rule 5). From six draws on that is 95 % or more.
`bootstrap_of` is for other statistics: means, maxima, ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
RESAMPLES = 10_000


@dataclass(frozen=True)
class Estimate:
    """A statistic of n draws and its confidence interval."""

    value: float
    low: float
    high: float
    confidence: float
    """The confidence of the interval: the requested one, or the best that so few draws allow."""
    n: int
    how: str
    """`order statistics` or `bootstrap`."""

    def json(self) -> dict[str, Any]:
        return asdict(self)

    def words(self, digits: int = 2) -> str:
        """`3.50 [3.21, 3.77]`; a single draw has no interval."""
        if self.n == 1:
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def median_of(draws: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The median, between the two nearest order statistics that give `confidence`.

    Where even the least and the largest draw do not, they are the interval, with the confidence
    1 - 2**(1 - n). Raises ValueError without draws, or with one that is no number.
    """
    ordered = _sorted(draws)
    n = len(ordered)
    below, tail = 0, 0.0
    # P(fewer than k draws lie below the median), k rising while both tails still fit.
    while below < (n - 1) // 2:
        more = tail + comb(n, below) / 2**n
        if 2 * more > 1 - confidence:
            break
        below, tail = below + 1, more
    first = max(below - 1, 0)
    outside = 2 * sum(comb(n, k) for k in range(first + 1)) / 2**n
    return Estimate(
        float(np.median(ordered)),
        float(ordered[first]),
        float(ordered[n - 1 - first]),
        max(0.0, 1 - outside) if n > 1 else 0.0,
        n,
        "order statistics",
    )


def bootstrap_of(
    draws: ArrayLike,
    statistic: Callable[[F64], float],
    *,
    seed: int = 0,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Estimate:
    """A percentile bootstrap; one seed gives one result. Raises ValueError as `median_of` does."""
    ordered = _sorted(draws)
    random = np.random.default_rng(seed)
    again = [
        statistic(ordered[random.integers(len(ordered), size=len(ordered))])
        for _ in range(resamples)
    ]
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(again, [tail, 100 - tail])
    return Estimate(
        float(statistic(ordered)), float(low), float(high), confidence, len(ordered), "bootstrap"
    )


def _sorted(draws: ArrayLike) -> F64:
    ordered = np.sort(np.array(draws, np.float64).ravel())
    if not len(ordered) or not np.isfinite(ordered).all():
        raise ValueError("a statistic needs at least one finite number")
    return ordered


def caption(command: str, seeds: Iterable[int] = (), estimate: Estimate | None = None) -> str:
    """The caption of a number or picture: the meaning of the brackets, the seeds, the command."""
    parts = []
    if estimate and estimate.n > 1:
        what = "medians" if estimate.how == "order statistics" else "values"
        parts.append(
            f"{what} of {estimate.n} draws with {100 * estimate.confidence:.0f} % confidence "
            f"intervals ({estimate.how})"
        )
    if numbers := list(seeds):
        parts.append(f"seeds {_ranges(numbers)}")
    parts.append(f"made by `{command}`")
    return "; ".join(parts)


def _ranges(numbers: Sequence[int]) -> str:
    """`1 … 40, 50`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]} … {r[-1]}" for r in runs)
