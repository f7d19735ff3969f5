"""Routing Keys, Fig. 9: the same data in fewer, larger messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sar_lab.research.papers.claims import Claim, times_as_much
from sar_lab.research.papers.keys_curves import Curves, curves, faster, figure_of
from sar_lab.research.papers.keys_runs import ENGINES, KILO, LARGE, Setup
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.routing_keys_fig7 import APPLICATIONS
from sar_lab.research.papers.worded_claims import judged

SAID = quotes("routing-keys-fig9")
SIZES = (16, 64, 256)
"""KB; each rank sends 256 KB in each direction in total."""
UTILIZATION = 0.3
"""The paper does not give it."""


def routing_keys_fig9(seeds: Sequence[int]) -> Outcome:
    """Runs with 2, 8 and 32 applications."""
    results = {
        apps: curves({float(size): _setup(apps, size) for size in SIZES}, seeds)
        for apps in APPLICATIONS
    }
    return figure_of(claims_of, results, "KB a message", "KB")


def claims_of(results: Mapping[int, Curves]) -> list[Claim]:
    """What the figure is said to show."""
    claims = []
    for apps, each in results.items():
        for engine in ENGINES:
            by_size = {f"{size} KB": [each[engine][float(size)]] for size in SIZES}
            gain = times_as_much(by_size["16 KB"][0], by_size["256 KB"][0])
            claims.append(
                judged(
                    f"{apps} applications, {LABELS[engine]}: 256 KB faster than 16 KB",
                    by_size,
                    ours=f"{gain.words()} times as fast",
                    said=SAID["larger"],
                )
            )
        claims += [
            faster(each, "nrk", other, f"{apps} applications", SAID["all"])
            for other in ("conga", "dmodk", "ark")
            if (apps, other) != (2, "ark")  # Fig. 7: with 2 applications the two are alike
        ]
    return claims


def _setup(applications: int, size: int) -> Setup:
    both = (size * KILO, size * KILO)
    return Setup(LARGE, applications, UTILIZATION, both, SIZES[-1] // size)
