"""Lower bounds on the largest effective EFI and load, each with a name.

- `leaf`, `subtree`, `island` (`cuts.py`): the traffic that leaves a set of switches shares the
  channels that leave it.
- `whole`: the traffic of a leaf to one terminal takes one channel, since a table has one port for
  it.
- `sum` (`bundle_sums.py`): such traffic adds up to few different loads where jobs are few and
  large.
- `price` (`prices.py`): the linear programming bound. Both are slower, so only with `rounds`.

The bounds of the load leave out jobs whose traffic is declared, which makes none wrong.

`leaf`, `subtree` and `island` hold for all routes, `whole` and `sum` for those of forwarding
tables, `price` for minimal-hop routes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

import numpy as np

from sar_agent.demand.rates import undeclared
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.bundle_sums import RELATIVE_ERROR, sum_bound
from sar_agent.quality.cuts import Cut, island_cut, leaf_cut, subtree_cut
from sar_agent.quality.job_spread import F64, JobSpread, spread_of
from sar_agent.quality.prices import price_bound
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache


@dataclass(frozen=True)
class Bounds:
    """The bounds by name; all are 0 without jobs."""

    efi: dict[str, int]
    """The least possible maximum of the effective EFI, rounded up, since routes are whole."""
    load: dict[str, float]
    """The least possible maximum load."""

    @property
    def efi_max(self) -> int:
        """The best bound on the effective EFI."""
        return max(self.efi.values())

    @property
    def load_max(self) -> float:
        """The best bound on the load."""
        return max(self.load.values())

    @property
    def efi_by(self) -> str:
        """The name of the first bound on the effective EFI that is as good as the best."""
        return _first_best(self.efi)

    @property
    def load_by(self) -> str:
        """The name of the first bound on the load that is as good as the best."""
        return _first_best(self.load)


def _first_best(bounds: Mapping[str, float]) -> str:
    # Two bounds from the same cut may differ in the last bit.
    least = max(bounds.values()) * (1 - RELATIVE_ERROR)
    return next(name for name, bound in bounds.items() if bound >= least)


@lru_cache(maxsize=2)
def bounds_of(fabric: Fabric, mix: JobMix, *, rounds: int = 0, seconds: float = inf) -> Bounds:
    """The bounds of cuts; with `rounds`, also that of whole bundles' sums, and that of
    prices, which are improved so many times, or for `seconds`. Kept for the next tables of the same
    jobs: a pass measures several."""
    whole = _cuts(fabric, mix, rounds, seconds)
    part = undeclared(mix)
    sent = whole if part is mix else _cuts(fabric, part, rounds, seconds)
    return Bounds(
        {name: ceil(efi * (1 - RELATIVE_ERROR)) for name, (efi, _) in whole.items()},
        {name: load for name, (_, load) in sent.items()},
    )


def _cuts(fabric: Fabric, mix: JobMix, rounds: int, seconds: float) -> dict[str, Cut]:
    """The bounds of EFI and load by name, for these jobs."""
    spread, graph = spread_of(fabric, mix), graph_of(fabric)
    cuts: dict[str, Cut] = {
        "leaf": leaf_cut(fabric, spread),
        "subtree": subtree_cut(fabric, spread),
        "island": island_cut(fabric, spread, graph),
        "whole": whole_bound(fabric, spread),
    }
    if rounds:
        up, rate = fabric.channel_up.astype(np.float64), fabric.channel_rate.astype(np.float64)
        limits, each = (rounds, seconds / 2), np.ones_like(spread.demand)
        parts = fabric, spread, graph, new_cache(fabric)
        cuts["sum"] = sum_bound(fabric, spread)
        efi, load = (max(bounds) for bounds in zip(*cuts.values(), strict=True))
        cuts["price"] = (
            price_bound(*parts, each, up, *limits, efi).bound,
            price_bound(*parts, spread.demand, rate, *limits, load).bound,
        )
    return cuts


def whole_bound(fabric: Fabric, spread: JobSpread) -> Cut:
    """The bound `whole`: all traffic of a leaf's terminals of one job to one terminal elsewhere, a
    bundle, shares its first channel. So, of a leaf's bundles, the n x k + 1 largest put k + 1 on
    one of its n channels."""
    live = fabric.channel_up
    source = fabric.channel_source[live]
    channels = np.bincount(source, minlength=fabric.switches).astype(np.float64)
    rate = np.zeros(fabric.switches)
    # Both arrays have one type, for which numpy has a fast path.
    np.maximum.at(rate, source, fabric.channel_rate[live].astype(np.float64))
    bundles = spread.size[spread.job] - spread.terminals  # of each entry, all of one size
    channels, rate = channels[spread.switch], rate[spread.switch]
    usable = channels > 0
    if not usable.any():
        return 0.0, 0.0

    def most(size: F64) -> F64:
        order = np.lexsort((-size, spread.switch))
        until = np.cumsum(bundles[order])
        before = np.searchsorted(spread.switch[order], spread.switch[order])
        until -= (until - bundles[order])[before]
        stacked = np.empty_like(size)
        stacked[order] = np.ceil(until / np.maximum(1.0, channels[order])) * size[order]
        return stacked[usable]

    load = most(spread.terminals * spread.demand[spread.job]) / rate[usable]
    return float(most(spread.terminals).max()), float(load.max())
