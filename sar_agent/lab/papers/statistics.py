"""Medians over seeds, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

DRAWS = 2000


class Spread(NamedTuple):
    """Of one number over seeds."""

    median: float
    low: float
    """The mean's 95 % confidence interval, bootstrapped."""
    high: float
    mean: float


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value; the interval is drawn with a seed of its own."""
    found = np.asarray(values, np.float64)
    random = np.random.default_rng(0)
    means = found[random.integers(0, len(found), (DRAWS, len(found)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Spread(float(np.median(found)), float(low), float(high), float(found.mean()))
