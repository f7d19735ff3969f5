"""SAR, Section 4.3.2: new routing configurations a day, over a year of Taurus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.spec import load_fabric
from sar_lab.mixes.synthetic_histories import BEGIN, synthetic_history
from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.compared import PLAIN, Compared, claim
from sar_lab.research.papers.history_marks import DAY, marks_of
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import median_of

SAID = quotes("sar-reroutes")
DAYS = 365
MOST, MEAN, QUIET = 57, 14, 4
SATURDAY = 5
FIRST_DAY = 0
"""Synthetic histories begin on a Monday."""


@measured
def changes(seed: int) -> list[int]:
    """By day: polls, one every five minutes, that found other multi-switch jobs."""
    history = synthetic_history(f"synthetic:taurus,seed={seed},days={DAYS}")
    marks = marks_of(load_fabric("standin:taurus"), history, BEGIN, BEGIN + DAYS * DAY)
    return list(marks.changes_per_day)


def sar_reroutes(seeds: Sequence[int]) -> Outcome:
    """A year for each seed."""
    years = np.stack([changes(seed) for seed in seeds])
    most = median_of(years.max(axis=1).astype(float))
    quiet = median_of((years == 0).sum(axis=1).astype(float))
    weekend = (np.arange(DAYS) + FIRST_DAY) % 7 >= SATURDAY
    free, all_free = int((years[:, weekend] == 0).sum()), int((years == 0).sum())
    claims = [
        value("most changes in a day", MOST, most.value, NEAR, said=SAID["range"]),
        value("days of a year without a change", QUIET, quiet.value, NEAR, said=SAID["none"]),
        claim(
            Compared([free], PLAIN) > 0.5 * all_free,
            "days without a change: those at weekends over 50 % of all",
            ours=f"{free} of {all_free} days of {len(seeds)} years",
            said=SAID["none"],
        ),
    ]
    rows = [
        [str(seed), *(f"{v:g}" for v in np.percentile(year, [0, 25, 50, 75, 100])),
         f"{year.mean():.1f}", str(int((year == 0).sum()))]
        for seed, year in zip(seeds, years, strict=True)
    ]  # fmt: skip
    rows.append(["paper", "0", "", "", "", str(MOST), str(MEAN), str(QUIET)])
    return Outcome(
        claims,
        tables=[
            ResultTable(
                ["seed", "least", "25 %", "median", "75 %", "most", "mean", "days with none"], rows
            )
        ],
        draw=lambda figure: _draw(figure, years),
    )


def _draw(figure: Figure, years: NDArray[np.int64]) -> None:
    axes = figure.subplots()
    bins = np.arange(0, max(MOST, int(years.max())) + 2)
    label = f"ours, mean {years.mean():.1f}, n = {len(years)} years"
    share = np.full(years.size, 1 / len(years))
    axes.hist(years.ravel(), bins=bins.tolist(), color="#4477aa", weights=share, label=label)
    axes.axvline(MEAN, color="#ee6677", label=f"published mean, {MEAN} (an input)")
    axes.axvline(MOST, color="#ee6677", ls="--", label=f"published most, {MOST}")
    axes.set(xlabel="changes of the routes in a day", ylabel="days of a year")
    axes.legend(fontsize="small")
