"""How much lower a measure is after a reroute than before, with its uncertainty.

The interval is the one of Mann and Whitney's test for a shift, here of logarithms (Hodges and
Lehmann, 1963): the ratios of all pairs of a window after and a window before, sorted, without the
outermost ones. It assumes no distribution, and it holds for a few windows, where a bootstrap is too
narrow. It assumes that windows are independent, and alike but for the routes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
LEAST_WINDOWS = 4
"""Before, and after: with 3 and 3, no interval holds at `CONFIDENCE`."""


@dataclass(frozen=True)
class RatioInterval:
    """After by before: below 1 is better."""

    ratio: float
    """The median of the ratios of all pairs."""
    low: float
    high: float
    confidence: float
    """At least `CONFIDENCE`."""

    @property
    def better(self) -> bool:
        """Whether the whole interval is below 1."""
        return self.high < 1


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> RatioInterval | None:
    """The interval for measures that are at least 0; None where there are too few windows.

    >>> ratio_interval([4.0, 4.1, 4.2, 4.3], [2.0, 2.1, 2.2, 2.3]).better
    True
    >>> ratio_interval([4.0, 4.1, 4.2, 4.3], [2.0, 2.1, 4.2, 4.3]).better
    False
    """
    left_out, tail = outermost(len(before), len(after))
    if left_out < 0:
        return None
    ratios = sorted(_ratio(new, old) for new in after for old in before)
    return RatioInterval(
        ratio=float(np.median(ratios)),
        low=ratios[left_out],
        high=ratios[-1 - left_out],
        confidence=1 - 2 * tail,
    )


def outermost(before: int, after: int) -> tuple[int, float]:
    """How many pairs are left out at each end, and the chance that the ratio is beyond one end; -1
    and 0.0 where even all pairs do not hold at `CONFIDENCE`. Of as many windows, all orders are as
    likely where the routes change nothing: `ways` counts those by the pairs in which the one after
    is smaller.

    >>> outermost(3, 3)
    (-1, 0.0)
    >>> outermost(4, 4)[0], outermost(8, 8)[0]
    (0, 13)
    """
    ways = np.zeros(before * after + 1)
    ways[0] = 1.0
    # The Gaussian binomial coefficient, factor by factor: (1 - q^(b+i)) / (1 - q^i).
    for i in range(1, after + 1):
        shifted = np.zeros_like(ways)
        if before + i < len(ways):
            shifted[before + i :] = ways[: -(before + i)]
        ways = ways - shifted
        for k in range(i, len(ways)):
            ways[k] += ways[k - i]
    chance = np.cumsum(ways) / math.comb(before + after, after)
    inside = np.flatnonzero(chance <= (1 - CONFIDENCE) / 2)
    return (int(inside[-1]), float(chance[inside[-1]])) if len(inside) else (-1, 0.0)


def _ratio(after: float, before: float) -> float:
    if before == 0:
        return 1.0 if after == 0 else math.inf
    return after / before
