"""The comparison for several shares of busy hosts, on two kinds of tree: when does it help?

One mix may be lucky, so every point is the mean over several seeds. Oblivious routes do not depend
on the jobs, so they are computed once for each fabric.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_jobs
from sar_agent.quality import Measures, measure
from sar_agent.routing import Options, load_engine
from sar_lab.demo.engine_results import AFTER, BEFORE

SLIM, FULL = "xgft:2;16,24;1,12", "xgft:2;16,24;1,16"
BUSY = (0.2, 0.4, 0.6, 0.8, 1.0)
SEEDS = range(6)


@dataclass(frozen=True)
class MeanMeasures:
    """Measures of one set of routes, means over the seeds."""

    dark_fiber_ratio: float
    effective_efi_max: float
    throughput_mean: float


@dataclass(frozen=True)
class SweepPoint:
    """One fabric with one share of busy hosts."""

    fabric: str
    busy: float
    before: MeanMeasures
    after: MeanMeasures
    bound: float
    """Lower bound of the maximum effective EFI, mean over the seeds."""
    mixes: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def sweep(
    specs: tuple[str, ...] = (SLIM, FULL),
    busy_shares: tuple[float, ...] = BUSY,
    seeds: range = SEEDS,
) -> tuple[SweepPoint, ...]:
    """All points, one fabric after the other; mixes without a multi-switch job are left out."""
    points = []
    before, after = load_engine(BEFORE), load_engine(AFTER)
    for spec in specs:
        fabric = xgft_fabric(spec)
        oblivious = before.route(fabric, JobMix(()), Options())
        for busy in busy_shares:
            pairs = []
            for seed in seeds:
                mix = multi_switch_mix(fabric, synthetic_jobs(fabric, seed, busy=busy))
                if mix.jobs:
                    aware = after.route(fabric, mix, Options())
                    pairs.append((measure(fabric, mix, oblivious), measure(fabric, mix, aware)))
            if pairs:
                bound = float(np.mean([m.lower_bound_efi_max for m, _ in pairs]))
                means = [_means([pair[side] for pair in pairs]) for side in (0, 1)]
                points.append(SweepPoint(spec, busy, means[0], means[1], bound, len(pairs)))
    return tuple(points)


def _means(measures: list[Measures]) -> MeanMeasures:
    return MeanMeasures(
        float(np.mean([m.dark_fiber_ratio for m in measures])),
        float(np.mean([m.effective_efi_max for m in measures])),
        float(np.mean([m.throughput_mean for m in measures])),
    )
