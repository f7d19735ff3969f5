"""Routing Keys, Fig. 8: 1,728 hosts, every message of 32 KB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sar_lab.research.papers.claims import Claim
from sar_lab.research.papers.keys_curves import (
    UTILIZATIONS,
    Curves,
    by_label,
    curves,
    faster,
    figure_of,
    ratio,
)
from sar_lab.research.papers.keys_runs import KILO, LARGE, Setup
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.routing_keys_fig7 import APPLICATIONS
from sar_lab.research.papers.worded_claims import judged

SAID = quotes("routing-keys-fig8")
SIZES = (32 * KILO, 32 * KILO)


def routing_keys_fig8(seeds: Sequence[int]) -> Outcome:
    """Runs with 2, 8 and 32 applications."""
    results = {
        apps: curves({u: Setup(LARGE, apps, u, SIZES) for u in UTILIZATIONS}, seeds)
        for apps in APPLICATIONS
    }
    return figure_of(claims_of, results, "utilization")


def claims_of(results: Mapping[int, Curves]) -> list[Claim]:
    """What the figure is said to show."""
    claims = []
    for apps, each in results.items():
        times = [ratio(each, "dmodk", "ark", u) for u in UTILIZATIONS]
        claims.append(
            judged(
                f"{apps} applications: D-mod-k within 20 % of ARK",
                by_label(each),
                ours=f"{', '.join(each.words() for each in times)} times ARK",
                said=SAID["comparable"],
            )
        )
    return claims + [
        faster(results[a], "nrk", other, f"{a} applications", SAID["advantage"])
        for other, some in (("dmodk", APPLICATIONS), ("ark", APPLICATIONS[1:]))
        for a in some
    ]
