"""SAR, Table 1: what SAR gains over three oblivious routings, over a month of two machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sar_agent.lab.papers.claims import NEAR, Claim, order, value
from sar_agent.lab.papers.outcome import Table, outcome
from sar_agent.lab.papers.registry import Result
from sar_agent.lab.papers.sar_history import BECAUSE, HOW, OTHERS, SYSTEMS, month
from sar_agent.lab.replay.table1 import METRICS, Gain, table1
from sar_agent.lab.statistics import Estimate, median_of

NAME = "sar-table1"
WHERE = "sar-2016, Table 1"
CLASS = "S"
PUBLISHED = (
    "on average over a month SAR lowers the largest effective EFI by 23 % (Taurus) and 39 % "
    "(Tsubame2.5) against DFSSSP, by 30 and 27 % against fat-tree and Up*/Down* on Tsubame2.5, is "
    "0.6 % worse than these on Taurus; 3.6 … 10 points less dark fiber, 6 … 27 % more links a job"
)
SEEDS = 6

Cell = tuple[str, str, str]
"""System, other engine, metric."""
_MEAN = {
    "taurus": {
        "dfsssp": (57.3, 23.3, 4.3, 23.4, 6.03, 7.7, 11.1),
        "ftree": (-1.1, -0.6, -0.3, -2.1, 3.62, 6.6, 9.4),
        "updn": (-1.1, -0.6, -0.3, -2.1, 3.62, 6.6, 9.4),
    },
    "tsubame": {
        "dfsssp": (119.4, 38.5, 6.7, 30.1, 7.63, 18.3, 17.4),
        "ftree": (80.5, 29.7, 2.7, 14.8, 9.99, 26.5, 27.3),
        "updn": (69.9, 26.8, 2.4, 13.2, 5.51, 7.4, 6.4),
    },
}
"""The paper's "avg." columns, row by row: value and per cent, dark fiber in points alone."""


def published(cell: Cell) -> float:
    """Per cent, or points of dark fiber."""
    system, other, metric = cell
    place = {"effective_efi_max": 1, "job_efi_own": 3, "dark_fiber_ratio": 4, "job_links": 6}
    return _MEAN[system][other][place[metric]]


def run(seeds: Sequence[int], out: Path) -> Result:
    """Each seed is a month of both machines."""
    drawn: dict[Cell, list[Gain]] = {}
    for system in SYSTEMS:
        for seed in seeds:
            for gain in table1(month(system, seed), "sar", list(OTHERS)):
                drawn.setdefault((system, gain.other, gain.metric), []).append(gain)
    means = {cell: median_of([_size(gain) for gain in gains]) for cell, gains in drawn.items()}
    return outcome(
        out / f"{NAME}.png",
        list(_claims(means)),
        f"{HOW} Medians over seeds of the month's mean; brackets are 95 % confidence intervals.",
        because=BECAUSE,
        tables=[_table(system, means, drawn) for system in SYSTEMS],
    )


def _size(gain: Gain) -> float:
    return gain.mean if gain.mean_percent is None else gain.mean_percent


def _claims(means: dict[Cell, Estimate]) -> Iterator[Claim]:
    for cell, found in means.items():
        system, other, metric = cell
        what = f"{SYSTEMS[system]}, against {OTHERS[other]}, {METRICS[metric][0]}"
        said = published(cell)
        yield order(
            f"{what}: SAR is {'better' if said > 0 else 'worse'}",
            (found.value > 0) == (said > 0),
            found.words(1),
            f"{said:.1f}",
        )
        yield value(f"{what}: by how much", said, found.value, NEAR, digits=1)


def _table(system: str, means: dict[Cell, Estimate], drawn: dict[Cell, list[Gain]]) -> Table:
    rows = []
    for metric, (name, _) in METRICS.items():
        row = [name]
        for other in OTHERS:
            cell = system, other, metric
            largest = median_of([gain.largest for gain in drawn[cell]])
            row += [f"{largest.value:.1f}", means[cell].words(1), f"{published(cell):.1f}"]
        rows.append(row)
    head = [f"{SYSTEMS[system]} stand-in"]
    for label in OTHERS.values():
        head += [f"{label}: max.", "avg. %", "published %"]
    return Table(head, rows)
