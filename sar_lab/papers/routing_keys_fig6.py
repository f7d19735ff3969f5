"""Routing Keys, Fig. 6: six applications of 36 hosts on 216, over utilization."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sar_lab.papers.keys_curves import (
    HOW,
    UTILIZATIONS,
    curves,
    draw,
    faster,
    ratio,
    table,
)
from sar_lab.papers.keys_runs import SMALL, Setup
from sar_lab.papers.outcome import outcome
from sar_lab.papers.registry import ExperimentResult
from sar_lab.papers.routing_keys_fig7 import CONGA
from sar_lab.papers.worded_claims import PLAIN, judged

NAME = "routing-keys-fig6"
WHERE = "routing-keys-2017, Fig. 6"
CLASS = "Q"
PUBLISHED = (
    "NRK is faster than ARK, ARK than D-mod-k, D-mod-k than Conga at every utilization; the gain "
    "is largest at low ones"
)
SEEDS = 10


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """Runs with messages of 4 to 256 KB and four rounds of six phases."""
    results = curves({u: Setup(SMALL, 6, u, iterations=4) for u in UTILIZATIONS}, seeds)
    gains = [ratio(results, "dmodk", "nrk", u).value for u in UTILIZATIONS]
    claims = [
        faster(results, "nrk", "ark", "mixed sizes"),
        faster(results, "ark", "dmodk", "mixed sizes"),
        faster(results, "dmodk", "conga", "mixed sizes"),
        judged(
            "NRK's gain over D-mod-k at the lowest utilization higher than that at every other "
            "utilization",
            {
                "NRK's gain over D-mod-k at the lowest utilization": gains[:1] * len(gains[1:]),
                "that": gains[1:],
            },
            PLAIN,
            ours=", ".join(f"{gain:.2f}" for gain in gains),
        ),
    ]
    return outcome(
        out / f"{NAME}.png",
        claims,
        HOW,
        because=CONGA,
        tables=[table("utilization", results, "{:g}".format)],
        draw=lambda figure: draw(figure, {"216 hosts, 6 applications": results}, "utilization"),
        size=(6.0, 5.0),
    )
