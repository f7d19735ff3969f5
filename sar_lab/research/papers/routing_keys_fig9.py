"""Routing Keys, Fig. 9: the same data in fewer, larger messages."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import times_as_much
from sar_lab.research.papers.keys_curves import HOW, curves, faster, figure_of
from sar_lab.research.papers.keys_runs import ENGINES, KILO, LARGE, Setup
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.routing_keys_fig7 import APPLICATIONS
from sar_lab.research.papers.worded_claims import judged

WHERE = "routing-keys-2017, Fig. 9"
CLASS = "Q"
PUBLISHED = (
    "messages of 16 to 256 KB, the same data in all: larger ones are faster; NRK is faster than "
    "all others"
)
SEEDS = 6
SIZES = (16, 64, 256)
"""KB; each rank sends 256 KB in each direction in total."""
UTILIZATION = 0.3
"""The paper does not give it."""


def run(seeds: Sequence[int]) -> Outcome:
    """Runs with 2, 8 and 32 applications."""
    results = {
        apps: curves({float(size): _setup(apps, size) for size in SIZES}, seeds)
        for apps in APPLICATIONS
    }
    claims = []
    for apps in APPLICATIONS:
        for engine in ENGINES:
            by_size = {f"{size} KB": [results[apps][engine][float(size)]] for size in SIZES}
            gain = times_as_much(by_size["16 KB"][0], by_size["256 KB"][0])
            claims.append(
                judged(
                    f"{apps} applications, {LABELS[engine]}: 256 KB faster than 16 KB",
                    by_size,
                    ours=f"{gain.words()} times as fast",
                )
            )
        claims += [
            faster(results[apps], "nrk", other, f"{apps} applications")
            for other in ("conga", "dmodk", "ark")
            if (apps, other) != (2, "ark")  # Fig. 7: with 2 applications the two are alike
        ]
    how = f"{HOW} Utilization {UTILIZATION:g}, which the paper does not say."
    return figure_of(claims, results, "KB a message", "KB", how=how)


def _setup(applications: int, size: int) -> Setup:
    both = (size * KILO, size * KILO)
    return Setup(LARGE, applications, UTILIZATION, both, SIZES[-1] // size)
