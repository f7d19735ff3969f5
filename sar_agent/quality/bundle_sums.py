"""A lower bound from whole bundles: which loads a leaf switch's channels can have at all.

All traffic of a leaf's terminals of one job to one terminal elsewhere, a bundle, takes one channel,
since a table has one port for that terminal. So the load of a channel out of the leaf is at least a
sum of some of the leaf's bundles. One of its channels carries at least their mean, hence at least
the least sum of bundles that is not below the mean. With few, large jobs at a leaf these sums lie
far apart; with many small ones they hardly improve the mean.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64
from sar_agent.quality.cuts import Cut
from sar_agent.quality.job_spread import F64, JobSpread

MOST_SUMS = 20_000
"""Sums at one leaf; with more of them, its bound is the mean."""
RELATIVE_ERROR = 1e-9
"""The largest relative error of sums in floating point."""


def sum_bound(fabric: Fabric, spread: JobSpread) -> Cut:
    """The best bound of any leaf switch; it holds for routes of forwarding tables."""
    if not len(spread.size):
        return 0.0, 0.0
    each = np.ones_like(spread.demand)
    rate = fabric.channel_rate.astype(np.float64)
    return _best(fabric, spread, each, np.ones_like(rate)), _best(
        fabric, spread, spread.demand, rate
    )


def _best(fabric: Fabric, spread: JobSpread, weight: F64, capacity: F64) -> float:
    """`weight` float64[J] of a route of each job, `capacity` float64[C]."""
    live = np.flatnonzero(fabric.channel_up)
    ways = np.bincount(fabric.channel_source[live], minlength=fabric.switches)
    fastest = np.zeros(fabric.switches)
    np.maximum.at(fastest, fabric.channel_source[live], capacity[live])
    size = spread.terminals * weight[spread.job]
    number = spread.size[spread.job] - spread.terminals
    total = np.bincount(spread.switch, size * number, fabric.switches)
    mean = np.divide(total, ways, out=np.zeros_like(total), where=ways > 0)
    leaves = np.flatnonzero(mean)
    best = 0.0
    for leaf in leaves[np.argsort(-mean[leaves] / fastest[leaves], kind="stable")].tolist():
        here = np.flatnonzero((spread.switch == leaf) & (number > 0))
        if mean[leaf] + size[here].max() <= best * fastest[leaf]:
            continue  # the sum that is looked for is less than the mean and one bundle
        least = least_sum(size[here], number[here].astype(np.int64), float(mean[leaf]))
        best = max(best, least / float(fastest[leaf]))
    return best


def least_sum(size: F64, number: I64, least: float) -> float:
    """The least sum of bundles that is at least `least`, where all of them together are; `least`
    itself past `MOST_SUMS`. There are number[k], int64[K], bundles of size[k], float64[K].

    >>> least_sum(np.array([5.0, 2.0]), np.array([3, 2]), 7.5)
    9.0
    """
    floor = least * (1 - RELATIVE_ERROR)
    below, above = np.zeros(1), np.inf
    for k in np.argsort(-size):
        many = np.arange(min(int(number[k]), int(np.ceil(least / size[k]))) + 1)
        if len(below) * len(many) > MOST_SUMS:
            return least
        sums = np.unique(below[:, None] + many * size[k])
        above = min(above, sums[sums >= floor].min(initial=np.inf))
        below = sums[sums < floor]
    return float(max(above, least)) if np.isfinite(above) else least
