"""SAR, Fig. 7: four measures over a month, on both machines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_lab.history.job_history import F64
from sar_lab.replay.table1 import METRICS, column
from sar_lab.research.papers.claims import Claim
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.sar_history import LABELS, OTHERS, SYSTEMS, month
from sar_lab.research.papers.worded_claims import PLAIN, judged

SAID = quotes("sar-fig7")
_QUOTES = dict(zip(METRICS, ("peak", "job", "dark", "links"), strict=True))
SYMBOLS = dict(
    zip(
        METRICS,
        (r"max $\gamma^e$", r"avg $\gamma_{max}(j)$", r"$\theta$, %", "avg links of a job"),
        strict=True,
    )
)
Series = dict[str, dict[str, F64]]
"""Engine → metric → float64[samples]."""


def sar_fig7(seeds: Sequence[int]) -> Outcome:
    """Runs one month of each machine with the first seed."""
    results = {system: series(system, seeds[0]) for system in SYSTEMS}
    claims = [
        _claim(system, results[system], other, metric)
        for system in SYSTEMS
        for metric in METRICS
        for other in OTHERS
        if metric in ("dark_fiber_ratio", "job_links")
        or other == "opensm-dfsssp"
        or system == "tsubame"
    ]
    rows = [
        [SYSTEMS[system], label, *(f"{_mean(results[system][e][m], m):.1f}" for m in METRICS)]
        for system in SYSTEMS
        for e, label in LABELS.items()
    ]
    return Outcome(
        claims,
        tables=[ResultTable(["stand-in", "mean", *(name for name, _ in METRICS.values())], rows)],
        draw=lambda figure: _draw(figure, results),
    )


def series(system: str, seed: int) -> Series:
    """A month of a machine."""
    drawn = _columns(system, seed)
    return {e: {m: np.array(each) for m, each in of.items()} for e, of in drawn.items()}


@measured
def _columns(system: str, seed: int) -> dict[str, dict[str, list[float]]]:
    whole = month(system, seed)
    return {e: {m: column(whole, e, m).tolist() for m in METRICS} for e in LABELS}


def _mean(values: F64, metric: str) -> float:
    return float(np.nanmean(values)) * (100.0 if metric == "dark_fiber_ratio" else 1.0)


def _claim(system: str, series: Series, other: str, metric: str) -> Claim:
    name, sign = METRICS[metric]
    ours, theirs = series["sar"][metric], series[other][metric]
    both = np.isfinite(ours) & np.isfinite(theirs)
    return judged(
        f"{SYSTEMS[system]}: {name} better than {OTHERS[other]}'s at most samples",
        {name: (sign * ours[both]).tolist(), f"{OTHERS[other]}'s": (sign * theirs[both]).tolist()},
        PLAIN,
        ours=f"at {float((sign * (theirs - ours)[both] > 0).mean()):.0%} of samples",
        published="at most samples",
        said=SAID[_QUOTES[metric]],
    )


def _draw(figure: Figure, results: dict[str, Series]) -> None:
    """Hours as thin lines, the mean of each day as a thick one; y begins where the curves do."""
    places = figure.subplots(len(METRICS), len(results), sharex=True)
    for column_, (system, by_engine) in enumerate(results.items()):
        for here, (metric, name) in zip(places[:, column_], SYMBOLS.items(), strict=True):
            for engine, label in LABELS.items():
                values = by_engine[engine][metric]
                values = values * (100.0 if metric == "dark_fiber_ratio" else 1.0)
                days = len(values) // 24
                by_day = np.nanmean(values[: days * 24].reshape(days, 24), axis=1)
                at = np.arange(len(values)) / 24.0
                here.plot(at, values, lw=0.4, alpha=0.35, color=COLOURS[engine])
                here.plot(np.arange(days) + 0.5, by_day, lw=1.8, color=COLOURS[engine], label=label)
            here.set_ylabel(name)
        places[0][column_].set_title(f"{SYSTEMS[system]} stand-in, synthetic jobs, one month")
        places[-1][column_].set_xlabel("day (thin: hours, thick: means of days)")
    legend(figure, ncols=len(LABELS))
