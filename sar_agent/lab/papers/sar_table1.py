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
SMALL = 64
"""Largest job of the last table, which shows how much hangs on the sizes that nobody knows."""

Drawn = dict[tuple[str, str], list[Gain]]
"""Other engine and metric: a gain each seed."""
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


def published(system: str, other: str, metric: str) -> float:
    """Per cent, or points of dark fiber."""
    place = {"effective_efi_max": 1, "job_efi_own": 3, "dark_fiber_ratio": 4, "job_links": 6}
    return _MEAN[system][other][place[metric]]


def run(seeds: Sequence[int], out: Path) -> Result:
    """Each seed is a month of both machines."""
    drawn = {system: _drawn(system, seeds) for system in SYSTEMS}
    small = _drawn("tsubame", seeds, SMALL)
    return outcome(
        out / f"{NAME}.png",
        [claim for system in SYSTEMS for claim in _claims(system, drawn[system])],
        f"{HOW} Medians over seeds of the month's mean; brackets are 95 % confidence intervals.",
        because=BECAUSE,
        tables=[
            *(
                _table(f"{name} stand-in", system, drawn[system])
                for system, name in SYSTEMS.items()
            ),
            _table(f"Tsubame2.5 stand-in, no job above {SMALL} nodes", "tsubame", small),
        ],
    )


def _drawn(system: str, seeds: Sequence[int], largest: int | None = None) -> Drawn:
    """A gain each seed."""
    found: Drawn = {}
    for seed in seeds:
        for gain in table1(month(system, seed, largest), "sar", list(OTHERS)):
            found.setdefault((gain.other, gain.metric), []).append(gain)
    return found


def _mean(gains: Sequence[Gain]) -> Estimate:
    return median_of([_size(gain) for gain in gains])


def _size(gain: Gain) -> float:
    return gain.mean if gain.mean_percent is None else gain.mean_percent


def _claims(system: str, drawn: Drawn) -> Iterator[Claim]:
    for (other, metric), gains in drawn.items():
        what = f"{SYSTEMS[system]}, against {OTHERS[other]}, {METRICS[metric][0]}"
        said, found = published(system, other, metric), _mean(gains)
        yield order(
            f"{what}: SAR is {'better' if said > 0 else 'worse'}",
            (found.value > 0) == (said > 0),
            found.words(1),
            f"{said:.1f}",
        )
        yield value(f"{what}: by how much", said, found.value, NEAR, digits=1)


def _table(title: str, system: str, drawn: Drawn) -> Table:
    head, rows = [title], []
    for label in OTHERS.values():
        head += [f"{label}: max.", "avg. %", "published %"]
    for metric, (name, _) in METRICS.items():
        row = [name]
        for other in OTHERS:
            gains = drawn[other, metric]
            largest = median_of([gain.largest for gain in gains])
            said = published(system, other, metric)
            row += [f"{largest.value:.1f}", _mean(gains).words(1), f"{said:.1f}"]
        rows.append(row)
    return Table(head, rows)
