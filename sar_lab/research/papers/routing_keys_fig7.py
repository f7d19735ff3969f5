"""Routing Keys, Fig. 7: 1,728 hosts, mixed message sizes, in 2, 8 or 32 applications."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.keys_curves import (
    UTILIZATIONS,
    by_label,
    curves,
    faster,
    figure_of,
    ratio,
)
from sar_lab.research.papers.keys_runs import LARGE, Setup
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.worded_claims import PLAIN, judged

WHERE = "routing-keys-2017, Fig. 7"
CLASS = "Q"
PUBLISHED = (
    "2 applications, 10 % utilization: ARK and NRK 2.7 times as fast as D-mod-k and Conga, NRK "
    "hardly faster than ARK; with 8 and 32 applications NRK gains on ARK"
)
SEEDS = 6
APPLICATIONS = (2, 8, 32)
BECAUSE = (
    "message sizes follow a distribution of ours, and a fluid adaptive peer suffers only from "
    "outdated loads, not from queues and reordering"
)


def run(seeds: Sequence[int]) -> Outcome:
    """Runs with messages of 4 to 256 KB."""
    results = {
        apps: curves({u: Setup(LARGE, apps, u) for u in UTILIZATIONS}, seeds)
        for apps in APPLICATIONS
    }
    times = {e: ratio(results[2], e, "ark", 0.1) for e in ("dmodk", "conga")}
    gain = [ratio(results[apps], "ark", "nrk", 0.1) for apps in APPLICATIONS]
    low = {label: each[:1] for label, each in by_label(results[2]).items()}
    claims = [
        *(
            value(f"2 applications, 10 %: {LABELS[e]} against ARK", 2.7, times[e].value, NEAR)
            for e in times
        ),
        *(
            judged(
                f"2 applications, 10 %: {LABELS[e]} slower than ARK",
                low,
                ours=f"{times[e].words()} times as long",
            )
            for e in times
        ),
        judged("2 applications, 10 %: NRK within 5 % of ARK", low, ours=gain[0].words()),
        judged(
            "10 %: NRK's gain over ARK grows with applications",
            {"NRK's gain over ARK": [[each.value for each in gain]]},
            PLAIN,
            ours=", ".join(g.words() for g in gain),
        ),
        *(faster(results[apps], "nrk", "dmodk", f"{apps} applications") for apps in APPLICATIONS),
        *(faster(results[apps], "nrk", "conga", f"{apps} applications") for apps in APPLICATIONS),
        *(faster(results[a], "nrk", "ark", f"{a} applications") for a in APPLICATIONS[1:]),
    ]
    printed = {"2 applications": (0.1, 2.7)}
    return figure_of(claims, results, "utilization", because=BECAUSE, published=printed)
