"""SAR, Table 1: what SAR gains over three oblivious routings, over a month of two machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sar_lab.replay.table1 import METRICS, Gain, column, table1
from sar_lab.research.papers.claims import NEAR, RESAMPLES, Claim, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import spans
from sar_lab.research.papers.sar_history import BECAUSE, HOW, LABELS, OTHERS, SYSTEMS, month
from sar_lab.research.papers.worded_claims import judged
from sar_lab.research.statistics import Estimate, bootstrap_of, median_of

WHERE = "sar-2016, Table 1"
CLASS = "S"
PUBLISHED = (
    "on average over a month SAR lowers the largest effective EFI by 23 % (Taurus) and 39 % "
    "(Tsubame2.5) against DFSSSP, by 30 and 27 % against fat-tree and Up*/Down* on Tsubame2.5, is "
    "0.6 % worse than these on Taurus; 3.6 … 10 points less dark fiber, 6 … 27 % more links a job"
)
SEEDS = 6
SMALL = 96
"""The largest job of one of the tables, which shows how much depends on sizes: of 64, 80, 96 and
128 the one whose links of a job are nearest to `implied`. Gains did not influence the choice."""
SIZES = ("effective_efi_max", "job_efi_own", "job_links")
"""Metrics for which the paper prints a value and its per cent, which imply the whole."""
OURS, OURS_SEEDS = "sar-plus", 3
"""Our own engine, beside the paper's, in the first months; no claim of the paper is about it."""

Drawn = dict[tuple[str, str], list[Gain]]
"""(other engine, metric) → the gain of each seed."""


@dataclass(frozen=True)
class MonthlyGains:
    """The gains in all seeds' months of one machine."""

    sar: Drawn
    plus: Drawn
    means: dict[str, list[float]]
    """Metric → SAR's mean for each seed."""


_MEAN = {
    "taurus": {
        "opensm-dfsssp": (57.3, 23.3, 4.3, 23.4, 6.03, 7.7, 11.1),
        "opensm-ftree": (-1.1, -0.6, -0.3, -2.1, 3.62, 6.6, 9.4),
        "opensm-updn": (-1.1, -0.6, -0.3, -2.1, 3.62, 6.6, 9.4),
    },
    "tsubame": {
        "opensm-dfsssp": (119.4, 38.5, 6.7, 30.1, 7.63, 18.3, 17.4),
        "opensm-ftree": (80.5, 29.7, 2.7, 14.8, 9.99, 26.5, 27.3),
        "opensm-updn": (69.9, 26.8, 2.4, 13.2, 5.51, 7.4, 6.4),
    },
}
"""The "avg." columns of the paper, row by row: value and per cent; dark fiber in points only."""
_MOST = {
    "taurus": {
        "opensm-dfsssp": (50.8, 39.0, 9.38, 15.0),
        "opensm-ftree": (21.2, 11.4, 7.64, 13.8),
        "opensm-updn": (21.2, 11.4, 7.64, 13.8),
    },
    "tsubame": {
        "opensm-dfsssp": (61.2, 46.0, 12.06, 26.7),
        "opensm-ftree": (71.2, 49.8, 17.74, 43.9),
        "opensm-updn": (48.7, 29.9, 9.24, 14.9),
    },
}
"""The "max." columns in per cent, in the order of `METRICS`; dark fiber in points."""


def published(system: str, other: str, metric: str) -> float:
    """The published gain in per cent, or in percentage points of dark fiber."""
    place = {"effective_efi_max": 1, "job_efi_own": 3, "dark_fiber_ratio": 4, "job_links": 6}
    return _MEAN[system][other][place[metric]]


def implied(system: str, metric: str) -> float:
    """SAR's own mean, which follows from its gain over DFSSSP in absolute numbers and per cent."""
    at = {"effective_efi_max": 0, "job_efi_own": 2, "job_links": 5}[metric]
    gain, percent = _MEAN[system]["opensm-dfsssp"][at : at + 2]
    return gain / percent * 100 - METRICS[metric][1] * gain


def run(seeds: Sequence[int]) -> Outcome:
    """Runs a month of both machines for each seed."""
    months = {system: _months(system, seeds) for system in SYSTEMS}
    small = _months("tsubame", seeds, SMALL)
    tables = [
        _table(f"{name} stand-in", system, months[system].sar) for system, name in SYSTEMS.items()
    ]
    tables.append(_table(f"Tsubame2.5 stand-in, no job above {SMALL} nodes", "tsubame", small.sar))
    tables.append(_sizes(months, small))
    tables += [_ours(SYSTEMS[system], months[system].plus) for system in SYSTEMS]
    return Outcome(
        [claim for system in SYSTEMS for claim in _claims(system, months[system].sar)],
        f"{HOW} Medians over seeds of the month's mean; brackets are 95 % confidence intervals. "
        f"The tables of {OURS}, which is ours, are of the first {OURS_SEEDS} seeds.",
        because=BECAUSE,
        tables=tables,
        draw=lambda figure: _draw(figure, months, small),
        size=(11.0, 7.0),
    )


def _months(system: str, seeds: Sequence[int], largest: int | None = None) -> MonthlyGains:
    result = MonthlyGains({}, {}, {})
    for seed in seeds:
        with_ours = largest is None and seed in seeds[:OURS_SEEDS]
        engines = (*LABELS, OURS) if with_ours else tuple(LABELS)
        whole = month(system, seed, largest, engines)
        for gain in table1(whole, "sar", list(OTHERS)):
            result.sar.setdefault((gain.other, gain.metric), []).append(gain)
        if with_ours:
            for gain in table1(whole, OURS, list(LABELS)):
                result.plus.setdefault((gain.other, gain.metric), []).append(gain)
        for metric in SIZES:
            values = column(whole, "sar", metric)
            result.means.setdefault(metric, []).append(float(np.nanmean(values)))
    return result


def _mean(gains: Sequence[Gain]) -> Estimate:
    return median_of([_size(gain) for gain in gains])


def _largest(gains: Sequence[Gain]) -> Estimate:
    percent = [g.largest if g.largest_percent is None else g.largest_percent for g in gains]
    return median_of(percent)


def _size(gain: Gain) -> float:
    return gain.mean if gain.mean_percent is None else gain.mean_percent


def published_most(system: str, other: str, metric: str) -> float:
    """The published largest gain in per cent, or in percentage points of dark fiber."""
    return _MOST[system][other][list(METRICS).index(metric)]


def _claims(system: str, drawn: Drawn) -> Iterator[Claim]:
    """For each cell: the sign of the mean gain, told apart from 0 by the seeds' months, each a pair
    of the same jobs; its size; and the size of the largest gain."""
    for (other, metric), gains in drawn.items():
        what = f"{SYSTEMS[system]}, against {OTHERS[other]}, {METRICS[metric][0]}"
        printed, result = published(system, other, metric), _mean(gains)
        each = [_size(gain) for gain in gains]
        yield judged(
            f"{what}: SAR is {'better' if printed > 0 else 'worse'}",
            {"SAR": [each]},
            ours=bootstrap_of(each, np.mean, resamples=RESAMPLES).words(1),
            published=f"{printed:.1f}",
        )
        yield value(f"{what}: by how much", printed, result.value, NEAR, digits=1)
        yield value(
            f"{what}: by how much at most",
            published_most(system, other, metric),
            _largest(gains).value,
            NEAR,
            digits=1,
        )


def _table(title: str, system: str, drawn: Drawn) -> ResultTable:
    head, rows = [title], []
    for label in OTHERS.values():
        head += [f"{label}: max. %", "published", "avg. %", "published"]
    for metric, (name, _) in METRICS.items():
        row = [name]
        for other in OTHERS:
            gains = drawn[other, metric]
            row += [f"{_largest(gains).value:.1f}", f"{published_most(system, other, metric):.1f}"]
            row += [_mean(gains).words(1), f"{published(system, other, metric):.1f}"]
        rows.append(row)
    return ResultTable(head, rows)


def _sizes(months: Mapping[str, MonthlyGains], small: MonthlyGains) -> ResultTable:
    """The job sizes that the paper's gains imply, beside ours."""
    head = ["SAR's own mean", "Taurus: paper", "stand-in", "Tsubame2.5: paper", "stand-in"]
    rows = []
    for metric in SIZES:
        row = [METRICS[metric][0]]
        for system in SYSTEMS:
            ours = median_of(months[system].means[metric])
            row += [f"{implied(system, metric):.1f}", ours.words(1)]
        row.append(median_of(small.means[metric]).words(1))
        rows.append(row)
    return ResultTable([*head, f"no job above {SMALL} nodes"], rows)


def _ours(name: str, drawn: Drawn) -> ResultTable:
    """Our engine in the same months; no claim of the paper is about it."""
    return median_table(
        f"{name} stand-in, {OURS} gains on average, %",
        {label: other for other, label in LABELS.items()},
        {label: metric for metric, (label, _) in METRICS.items()},
        lambda metric, other: [_size(gain) for gain in drawn[other, metric]],
        1,
    )


def _draw(figure: Figure, months: Mapping[str, MonthlyGains], small: MonthlyGains) -> None:
    rows = [(system, SYSTEMS[system], result) for system, result in months.items()]
    rows.append(("tsubame", f"{SYSTEMS['tsubame']},\n≤ {SMALL} nodes", small))
    axes = figure.subplots(len(rows), len(METRICS), sharey="row")
    for row, (system, title, result) in enumerate(rows):
        for here, (metric, (label, _)) in zip(axes[row], METRICS.items(), strict=True):
            ours = [_mean(result.sar[other, metric]) for other in OTHERS]
            printed = [published(system, other, metric) for other in OTHERS]
            here.axhline(0.0, color="#888888", lw=0.8)
            here.plot(printed, "D", color="#ee6677", mfc="none", label="published")
            here.errorbar(range(len(ours)), [e.value for e in ours], spans(ours), fmt="o",
                          color="#4477aa", label="ours")  # fmt: skip
            here.set_xticks(range(len(ours)), OTHERS.values(), fontsize="small")
            here.set_xlim(-0.5, len(ours) - 0.5)
            if row == 0:
                here.set_title(label)
        axes[row][0].set_ylabel(f"{title}\nSAR gains, %")
    axes[0][0].legend(fontsize="small")
