"""Routing Keys, Fig. 6: six applications of 36 hosts on 216, over utilization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from sar_lab.research.papers.claims import Claim, times_as_much
from sar_lab.research.papers.keys_curves import (
    PEERS,
    UTILIZATIONS,
    Curves,
    curves,
    draw,
    faster,
    qualified,
    ratio,
    table,
    with_printed,
)
from sar_lab.research.papers.keys_runs import KILO, SMALL, Setup, worst_of
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.worded_claims import PLAIN, judged
from sar_lab.research.trace.adaptive import AdaptiveRouting

SAID = quotes("routing-keys-fig6")


def routing_keys_fig6(seeds: Sequence[int]) -> Outcome:
    """Runs with messages of 4 to 256 KB and four rounds of six phases."""
    setups = {u: Setup(SMALL, 6, u, iterations=4) for u in UTILIZATIONS}
    results = curves(setups, seeds)
    claims, printed = with_printed(claims_of, {6: results})
    return Outcome(
        claims,
        qualified=qualified(claims, printed),
        words=PEERS,
        as_printed=printed,
        tables=[table("utilization", results), peers(setups, results, seeds)],
        draw=lambda figure: draw(figure, {"216 hosts, 6 applications": results}, "utilization"),
    )


def claims_of(by_apps: Mapping[int, Curves]) -> list[Claim]:
    """What the figure is said to show."""
    results = by_apps[6]
    gains = [ratio(results, "dmodk", "nrk", u).value for u in UTILIZATIONS]
    lowest = "NRK's gain over D-mod-k at the lowest utilization"
    return [
        faster(results, "nrk", "ark", "mixed sizes", SAID["nrk"]),
        faster(results, "ark", "dmodk", "mixed sizes", SAID["ark"]),
        faster(results, "dmodk", "conga", "mixed sizes", SAID["conga"]),
        judged(
            f"{lowest} higher than that at every other utilization",
            {lowest: gains[:1] * len(gains[1:]), "that": gains[1:]},
            PLAIN,
            ours=", ".join(f"{gain:.2f}" for gain in gains),
            said=SAID["low"],
        ),
    ]


def peers(setups: dict[float, Setup], results: Curves, seeds: Sequence[int]) -> ResultTable:
    """How the adaptive peer depends on the parameters that the paper does not print."""
    rows = []
    for flowlet, feedback in product((math.inf, 64 * KILO), (20e-6, 160e-6, 1e-3, 10e-3)):
        peer = AdaptiveRouting(flowlet, feedback)
        words = "a message" if flowlet == math.inf else f"{flowlet / KILO:g} KB"
        times = [
            times_as_much(
                [1e3 * t for t in worst_of(setup, "conga", list(seeds), peer)], results["dmodk"][u]
            )
            for u, setup in setups.items()
        ]
        rows.append([f"{words}, {1e6 * feedback:g} µs", *(each.words() for each in times)])
    heads = [f"{u:g}" for u in setups]
    return ResultTable(["flowlet, loads of the last …: peer against D-mod-k, at", *heads], rows)
