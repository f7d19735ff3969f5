"""Delays of a victim partition under noise (pftree-2016, Section 6.3), as ORCS counts them.

pFTree is the printed version, with both of its rules for ties and as a hypothesis has it, and
pFTree-Ext has no quota of ways, since the paper prints none; for comparison there are our own
versions of both, and `ftree`, which ignores partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sar_lab.research.orcs import Network, network_of_routes, schedule_of, simulate
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.pftree_trees import Table3Tree, VictimDraw, draw_victims, routed
from sar_lab.research.statistics import Estimate, median_of

PATTERNS = ("bisect", "gather", "scatter", "bisect_fb_sym", "alltoall")
PLAIN, EXT = "pftree-printed", "pftree-ext-no-quota"
FIRST, SHORT = "pftree-printed-first", "pftree-one-short"
READINGS = (FIRST, SHORT)
ENGINES = (PLAIN, *READINGS, EXT, "pftree-ext", "pftree", "ftree")


@dataclass(frozen=True)
class Delays:
    """The delays of one pattern, engine and tree over seeds, each with many runs."""

    least: float
    mean: Estimate
    """The median over seeds of the runs' mean."""
    most: float
    draws: tuple[float, ...]
    """The runs' mean of each seed."""


def delays(
    tree: Table3Tree, engine: str, pattern: str, noise: str, seeds: Sequence[int], runs: int
) -> Delays:
    """dep_max_delay of the victims' `pattern` while the others do `noise`."""
    least, mean, most = np.array(runs_of(tree, engine, pattern, noise, list(seeds), runs)).T
    return Delays(float(least.min()), median_of(mean), float(most.max()), tuple(mean.tolist()))


@measured
def runs_of(
    tree: Table3Tree, engine: str, pattern: str, noise: str, seeds: list[int], runs: int
) -> list[list[float]]:
    """Least, mean and most of the runs of each seed. The ranks of the victims are drawn for each
    run; for an all-to-all they do not matter."""
    results = []
    for seed in seeds:
        draw, network = network_of(tree, engine, seed)
        schedule = schedule_of(f"{pattern}::{noise}", tree.nodes, tree.victims)
        once = 1 if pattern == "alltoall" else runs
        values = simulate(
            network, schedule, "dep_max_delay", runs=once, seed=seed, group=draw.victims
        ).values
        results.append([float(values.min()), float(values.mean()), float(values.max())])
    return results


@lru_cache(maxsize=64)
def network_of(tree: Table3Tree, engine: str, seed: int) -> tuple[VictimDraw, Network]:
    """The victims of a seed, and the routed network, whose hosts are the fabric's terminals."""
    draw = draw_victims(tree, seed)
    return draw, network_of_routes(draw.fabric, routed(draw, engine))
