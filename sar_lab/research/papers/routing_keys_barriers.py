"""Routing Keys, Figs. 7 to 9 with 2 applications, over the cost of a barrier.

The paper counts on barriers ("fewer barriers … less synchronization", Section IV-C) and does not
print what one costs. The other rows take a small message of MPI for a round of a dissemination
barrier. This one sweeps that time and claims nothing: a time that was chosen by the result would be
a fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sar_lab.research.papers.claims import times_as_much
from sar_lab.research.papers.keys_runs import CONGA, KILO, LARGE, ROUND, Setup, worst_of
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS, band
from sar_lab.research.statistics import Estimate
from sar_lab.research.trace.play_trace import barrier_rounds

APPLICATIONS, UTILIZATION = 2, 0.1
ROUNDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Microseconds of a round."""
RANKS = 1728 // APPLICATIONS
OTHERS = ("dmodk", "conga")
ALIKE, BIG, SMALLER = "32 KB: D-mod-k against ARK", 256, 16
"""The claim of Fig. 8 that does not hold with 2 applications, and the sizes of Fig. 9."""


def routing_keys_barriers(seeds: Sequence[int]) -> Outcome:
    """Two applications under each engine and cost."""

    def compared(*sides: tuple[str, Setup]) -> list[Estimate]:
        return [
            times_as_much(*(_worst(engine, setup, seeds, cost) for engine, setup in sides))
            for cost in ROUNDS
        ]

    mixed = Setup(LARGE, APPLICATIONS, UTILIZATION)
    one_size = replace(mixed, sizes=(32 * KILO, 32 * KILO))
    against = {
        f"{LABELS[other]} against ARK": compared((other, mixed), ("ark", mixed)) for other in OTHERS
    }
    against[ALIKE] = compared(("dmodk", one_size), ("ark", one_size))
    against["ARK: 16 KB against 256 KB"] = compared(
        *(("ark", _same_data(size)) for size in (SMALLER, BIG))
    )
    rows = [[what, *(each.words() for each in line)] for what, line in against.items()]
    return Outcome(
        [],
        words={"rounds": barrier_rounds(RANKS)},
        tables=[ResultTable(["time, µs a round", *(f"{cost:g}" for cost in ROUNDS)], rows)],
        draw=lambda figure: _draw(figure, against),
    )


def _worst(engine: str, setup: Setup, seeds: Sequence[int], cost: float) -> list[float]:
    costly = replace(setup, round_seconds=cost * 1e-6)
    return worst_of(costly, engine, list(seeds), CONGA)


def _same_data(kilobytes: int) -> Setup:
    """Fig. 9: the same data in messages of one size."""
    sizes = (kilobytes * KILO, kilobytes * KILO)
    return Setup(LARGE, APPLICATIONS, 0.3, sizes, BIG // kilobytes)


def _draw(figure: Figure, against: dict[str, list[Estimate]]) -> None:
    axes = figure.subplots()
    colours = (*(COLOURS[other] for other in OTHERS), "#aa3377", COLOURS["ark"])
    for (what, line), colour in zip(against.items(), colours, strict=True):
        band(axes, ROUNDS, line, ".-", color=colour, label=what)
    axes.axhline(2.7, color="#888888", lw=0.8, ls="--", label="published, Fig. 7, against ARK")
    axes.axvline(1e6 * ROUND, color="#888888", lw=0.8, ls=":", label="Figs. 6 to 9 here")
    draws = next(iter(against.values()))[0].n
    axes.set(
        xlabel=f"µs a round of a barrier (n = {draws} pairs; bands: 95 % intervals)",
        ylabel="times as long",
        ylim=0,
    )
    figure.legend(loc="outside upper center", ncols=2, fontsize="small")
