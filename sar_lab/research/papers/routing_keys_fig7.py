"""Routing Keys, Fig. 7: 1,728 hosts, mixed message sizes, in 2, 8 or 32 applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.keys_curves import (
    UTILIZATIONS,
    Curves,
    by_label,
    curves,
    faster,
    figure_of,
    ratio,
)
from sar_lab.research.papers.keys_runs import LARGE, Setup
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.worded_claims import PLAIN, judged

SAID = quotes("routing-keys-fig7")
APPLICATIONS = (2, 8, 32)


def routing_keys_fig7(seeds: Sequence[int]) -> Outcome:
    """Runs with messages of 4 to 256 KB."""
    results = {
        apps: curves({u: Setup(LARGE, apps, u) for u in UTILIZATIONS}, seeds)
        for apps in APPLICATIONS
    }
    printed = {"2 applications": (0.1, SAID["times"].number)}
    return figure_of(claims_of, results, "utilization", published=printed)


def claims_of(results: Mapping[int, Curves]) -> list[Claim]:
    """What the figure is said to show."""
    times = {e: ratio(results[2], e, "ark", 0.1) for e in ("dmodk", "conga")}
    gain = [ratio(results[apps], "ark", "nrk", 0.1) for apps in APPLICATIONS]
    low = {label: each[:1] for label, each in by_label(results[2]).items()}
    grows = {"NRK's gain over ARK": [[each.value for each in gain]]}
    return [
        *(
            value(f"2 applications, 10 %: {LABELS[e]} against ARK", SAID["times"],
                  times[e].value, NEAR)
            for e in times
        ),
        judged("2 applications, 10 %: NRK within 5 % of ARK", low, ours=gain[0].words(),
               said=SAID["negligible"]),
        judged("10 %: NRK's gain over ARK grows with applications", grows, PLAIN,
               ours=", ".join(g.words() for g in gain), said=SAID["further"]),
        *(
            faster(results[apps], "nrk", other, f"{apps} applications", SAID["all"])
            for other in ("dmodk", "conga")
            for apps in APPLICATIONS
        ),
        *(
            faster(results[a], "nrk", "ark", f"{a} applications", SAID["further"])
            for a in APPLICATIONS[1:]
        ),
    ]  # fmt: skip
