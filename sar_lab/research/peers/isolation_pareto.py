"""Isolation against utilisation and bandwidth: what each kind of placement and routes gives up.

The same jobs wait for the same machine. A scheduler gives every job cables of its own (Jigsaw), or
only jobs up to a size, and others where it can, or takes any free nodes. Less isolation leaves
fewer nodes idle, and jobs disturb each other more. sar-plus on a scheduler that scatters jobs is
beside that line.

Two kinds of traffic are judged: an all-to-all that is under way all at once (the share of its
bandwidth that a job keeps), and phases in which every host sends one message (how many times longer
they take because of other jobs).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.quality import measure
from sar_lab.mixes.lublin import SubmittedJobs
from sar_lab.research.papers.claims import Claim, more, order
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import legend, spans
from sar_lab.research.peers.isolating_placement import isolated_routes, space_of
from sar_lab.research.peers.jigsaw_isolation import (
    LARGEST,
    SPEC,
    Cases,
    Schedule,
    mix_of,
    placed_anywhere,
    queue_of,
    running_at,
    utilisation,
)
from sar_lab.research.peers.partial_isolation import PartialSpace
from sar_lab.research.peers.phase_interference import phase_times
from sar_lab.research.peers.placed_queue import run_placed
from sar_lab.research.statistics import median_of

JOBS, EDGE, MOMENTS = 400, 60, 6
"""Jobs of a queue; those at its beginning and end that are not judged; moments."""
PHASES = 16
INSIST = (LARGEST, 48, 24, 0)
"""The largest job that waits for cables of its own."""
ISOLATED = ("isolated", *(f"isolated up to {size}" for size in INSIST[1:3]), "isolated if possible")
ANYWHERE = ("scattered, ftree", "scattered, sar-plus", "first fit, ftree", "first fit, sar-plus")
ROWS = (*ISOLATED, *ANYWHERE)
COLOURS = (*["#ee6677"] * 4, "#999999", "#4477aa", "#ccbb44", "#66ccee")
MARKERS = ("o", "s", "^", "v", "o", "o", "s", "s")


class Traded(NamedTuple):
    """One placement and its routes on one queue; means over moments and jobs on several leaves."""

    utilisation: float
    kept: float
    """The share of its bandwidth that a job keeps in an all-to-all."""
    interference: float
    """Time of phases, divided by that without other jobs."""
    slowdown: float
    """Time of phases, divided by that without any contention."""


Results = dict[str, list[Traded]]
"""Row → a result for each queue."""


def isolation_pareto(seeds: Sequence[int]) -> Outcome:
    """All rows on the queues of all seeds."""
    results: Results = by_key(traded(seed) for seed in seeds)
    table = ResultTable(
        ["placement, routes", "utilisation, %", "all-to-all keeps", "phases: interference",
         "phases: slowdown"],
        [
            [
                row,
                median_of([100 * e.utilisation for e in each]).words(1),
                *(
                    median_of([getattr(e, name) for e in each]).words()
                    for name in ("kept", "interference", "slowdown")
                ),
            ]
            for row, each in results.items()
        ],
    )  # fmt: skip
    return Outcome(
        claims_of(results), tables=[table], draw=lambda figure: _draw(figure, results, len(seeds))
    )


@measured
def traded(seed: int) -> dict[str, Traded]:
    """Every row of `ROWS` on one queue."""
    fabric = load_fabric(SPEC)
    queue = queue_of(seed)
    jobs = SubmittedJobs(queue.arrival[:JOBS], queue.nodes[:JOBS], queue.seconds[:JOBS])
    found = {}
    for row, size in zip(ISOLATED, INSIST, strict=True):
        ran = run_placed(jobs, PartialSpace(space_of(fabric), size))
        cases = []
        for some in running_at(ran, EDGE, MOMENTS):
            mix = mix_of(fabric, [job.place.hosts for job in some])
            own = [job.place.shares for job in some if job.place.isolated]
            cases.append((mix, isolated_routes(fabric, own)))
        found[row] = _judged(fabric, ran, cases, seed)
    for row, free, routed in placed_anywhere(fabric, jobs, seed, EDGE, MOMENTS):
        found[row] = _judged(fabric, free, routed, seed)
    return found


def _judged(fabric: Fabric, ran: Schedule, cases: Cases, seed: int) -> Traded:
    kept, interference, slowdown = [], [], []
    for number, (mix, routes) in enumerate(cases):
        kept.append(measure(fabric, mix, routes).throughput_mean)
        times = phase_times(fabric, mix, routes, PHASES, seed * MOMENTS + number)
        interference.append(times.interference.mean())
        slowdown.append(times.together.mean())
    return Traded(
        utilisation(ran, fabric.terminals, EDGE),
        float(np.mean(kept)),
        float(np.mean(interference)),
        float(np.mean(slowdown)),
    )


def claims_of(results: Results) -> list[Claim]:
    """What the study states, judged by these numbers alone."""
    alone, plus, other = ISOLATED[0], "scattered, sar-plus", "scattered, ftree"
    worst = max(each.interference for each in results[alone])
    least = min(each.kept for each in results[plus])
    claims = [
        order(f"{alone}: no other job disturbs a phase", worst <= 1 + 1e-9, f"{worst:.3f} at most"),
        order(
            f"{plus}: an all-to-all keeps 97 % of its bandwidth or more",
            least >= 0.97,
            f"{100 * least:.1f} % at least",
        ),
    ]
    for strict, loose in pairwise(ISOLATED):
        claims.append(_above(results, "utilisation", loose, strict))
        claims.append(_above(results, "interference", loose, strict))
    claims += [
        _above(results, "utilisation", plus, alone),
        _above(results, "kept", plus, other),
        _above(results, "interference", plus, alone),
        _above(results, "interference", other, plus),
    ]
    return claims


WORDS = {
    "utilisation": "utilisation",
    "kept": "bandwidth of an all-to-all",
    "interference": "interference in phases",
}


def _above(results: Results, name: str, row: str, other: str) -> Claim:
    of = {each: [getattr(one, name) for one in results[each]] for each in (row, other)}
    return more(f"{WORDS[name]}: {row} above {other}", of[row], of[other], digits=3)


def _draw(figure: Figure, results: Results, queues: int) -> None:
    panels = (
        ("interference", "phases: time by that alone", "lower right is best"),
        ("kept", "all-to-all: bandwidth kept", "upper right is best"),
    )
    for axes, (name, label, best) in zip(figure.subplots(1, 2), panels, strict=True):
        line = []
        for row, colour, marker in zip(ROWS, COLOURS, MARKERS, strict=True):
            x = median_of([100 * each.utilisation for each in results[row]])
            y = median_of([getattr(each, name) for each in results[row]])
            axes.errorbar(
                x.value, y.value, xerr=spans([x]), yerr=spans([y]), color=colour, marker=marker,
                linestyle="", elinewidth=0.8, label=row,
            )  # fmt: skip
            if row in ISOLATED:
                line.append((x.value, y.value))
        axes.plot(*zip(*line, strict=True), color=COLOURS[0], linewidth=0.8)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(title=best, xlabel="utilisation (%)", ylabel=label)
    legend(figure, "outside lower center", ncols=4)
    same = [claim.says for claim in claims_of(results) if claim.holds is None]
    figure.suptitle(
        f"{SPEC}: n = {queues} queues; points are medians, bars their 95 % intervals"
        + "".join(f"\nnot told apart on the same queues: {says}" for says in same),
        fontsize=9,
    )
