"""SAR, Table 1 and Fig. 7: what SAR gains over three oblivious routings, and four measures, over a
month of each machine's stand-in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sar_agent.fabric.spec import load_fabric
from sar_lab.history.job_history import F64
from sar_lab.mixes.synthetic_histories import synthetic_history
from sar_lab.replay.pools import pool_for
from sar_lab.replay.replay_folder import read_result
from sar_lab.replay.replay_plan import ReplayPlan
from sar_lab.replay.replay_run import run_replay
from sar_lab.replay.samples import samples_of
from sar_lab.replay.table1 import METRICS, Gain, column, table1
from sar_lab.research.papers import pictures
from sar_lab.research.papers.claims import NEAR, RESAMPLES, Claim, order, value
from sar_lab.research.papers.compared import PLAIN, Compared, claim, is_gain, most
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import COLOURS, legend, spans
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import Estimate, bootstrap_of, median_of

if TYPE_CHECKING:
    import pyarrow as pa

SYSTEMS = {"taurus": "Taurus", "tsubame": "Tsubame2.5"}
OTHERS = {e: pictures.LABELS[e] for e in ("opensm-dfsssp", "opensm-ftree", "opensm-updn")}
"""OpenSM's own tables (`sar_lab/opensm_tables`)."""
LABELS = {**OTHERS, "sar": "SAR"}
EVERY = 3600.0
"""Seconds between samples. The paper took one every ten minutes."""


def month(
    system: str,
    seed: int,
    largest: int | None = None,
    engines: Sequence[str] = tuple(LABELS),
    from_scratch: bool = True,
) -> pa.Table:
    """`replay.parquet` of a month, computed on all cores; `largest` limits the nodes of a job. Each
    state is computed from scratch, as in the paper, or else from the one before, as the agent does.
    """
    fabric = load_fabric(f"standin:{system}")
    spec = f"synthetic:{system},seed={seed}" + (f",largest={largest}" if largest else "")
    history = synthetic_history(spec)
    samples = samples_of(fabric, history, EVERY)
    work = ReplayPlan(fabric, samples, tuple(engines), from_scratch=from_scratch)
    with tempfile.TemporaryDirectory(prefix="sar-replay-") as folder:
        run_replay(history, work, Path(folder), pool_for(None), "")
        return read_result(Path(folder))


SAID_7 = quotes("sar-fig7")
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
        _claim_fig7(system, results[system], other, metric)
        for system in SYSTEMS
        for metric in METRICS
        for other in OTHERS
        if metric in ("dark_fiber_ratio", "job_links")
        or other == "opensm-dfsssp"
        or system == "tsubame"
    ]
    rows = [
        [SYSTEMS[system], label, *(f"{_mean_of(results[system][e][m], m):.1f}" for m in METRICS)]
        for system in SYSTEMS
        for e, label in LABELS.items()
    ]
    return Outcome(
        claims,
        tables=[ResultTable(["stand-in", "mean", *(name for name, _ in METRICS.values())], rows)],
        draw=lambda figure: _draw_fig7(figure, results),
    )


def series(system: str, seed: int) -> Series:
    """A month of a machine."""
    drawn = _columns(system, seed)
    return {e: {m: np.array(each) for m, each in of.items()} for e, of in drawn.items()}


@measured
def _columns(system: str, seed: int) -> dict[str, dict[str, list[float]]]:
    whole = month(system, seed)
    return {e: {m: column(whole, e, m).tolist() for m in METRICS} for e in LABELS}


def _mean_of(values: F64, metric: str) -> float:
    return float(np.nanmean(values)) * (100.0 if metric == "dark_fiber_ratio" else 1.0)


def _claim_fig7(system: str, series: Series, other: str, metric: str) -> Claim:
    name, sign = METRICS[metric]
    ours, theirs = series["sar"][metric], series[other][metric]
    both = np.isfinite(ours) & np.isfinite(theirs)
    mine, others = (Compared((sign * each[both]).tolist(), PLAIN) for each in (ours, theirs))
    return claim(
        most(mine < others),
        f"{SYSTEMS[system]}: {name} better than {OTHERS[other]}'s at most samples",
        ours=f"at {float((sign * (theirs - ours)[both] > 0).mean()):.0%} of samples",
        published="at most samples",
        said=SAID_7[_QUOTES[metric]],
    )


def _draw_fig7(figure: Figure, results: dict[str, Series]) -> None:
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


SAID_TABLE = quotes("sar-table1")
NEGLIGIBLE = 5.0
"""Per cent."""
SMALL = 96
"""The largest job of one of the tables, which shows how much depends on sizes: of 64, 80, 96 and
128 the one whose links of a job are nearest to `implied`. Gains did not influence the choice."""
SIZES = ("effective_efi_max", "job_efi_own", "job_links")
"""Metrics for which the paper prints a value and its per cent, which imply the whole."""
OURS, OURS_SEEDS = "sar-plus", 3
"""Our own engine, beside the paper's, in the first months; no claim of the paper is about it. It
goes from state to state as in the agent: from scratch it takes a second a state, ten times that."""

Cell = tuple[str, str]
"""Other engine, metric."""
Drawn = dict[Cell, list[Gain]]
"""(other engine, metric) → the gain of each seed."""


class MonthlyGains(NamedTuple):
    """The gains in all seeds' months of one machine."""

    sar: Drawn
    plus: Drawn
    means: dict[str, list[float]]
    """Metric → SAR's mean for each seed."""


def printed(system: str, other: str, metric: str) -> tuple[float, float, float]:
    """A cell of the table: the largest gain in per cent, and the mean gain as a number and in per
    cent; of dark fiber all are percentage points."""
    place = list(OTHERS).index(other) + len(OTHERS) * list(SYSTEMS).index(system)
    numbers = SAID_TABLE[metric].numbers
    if metric == "dark_fiber_ratio":
        most, mean = numbers[2 * place :][:2]
        return most, mean, mean
    _, most, mean, percent = numbers[4 * place :][:4]
    return most, mean, percent


def implied(system: str, metric: str) -> float:
    """SAR's own mean, which follows from its gain over DFSSSP in absolute numbers and per cent."""
    _, gain, percent = printed(system, "opensm-dfsssp", metric)
    return gain / percent * 100 - METRICS[metric][1] * gain


def sar_table1(seeds: Sequence[int]) -> Outcome:
    """Runs a month of both machines for each seed."""
    months = {system: _months(system, list(seeds)) for system in SYSTEMS}
    small = _months("tsubame", list(seeds), SMALL)
    tables = [
        _table(f"{name} stand-in", system, months[system].sar) for system, name in SYSTEMS.items()
    ]
    tables.append(_table(f"Tsubame2.5 stand-in, no job above {SMALL} nodes", "tsubame", small.sar))
    tables.append(_sizes(months, small))
    tables += [_ours(SYSTEMS[system], months[system].plus) for system in SYSTEMS]
    return Outcome(
        [claim for system in SYSTEMS for claim in _claims_table1(system, months[system].sar)],
        tables=tables,
        draw=lambda figure: _draw_table1(figure, months, small),
    )


def _months(system: str, seeds: Sequence[int], largest: int | None = None) -> MonthlyGains:
    each = [_month(system, s, largest, not largest and s in seeds[:OURS_SEEDS]) for s in seeds]
    sar, plus, means = zip(*each, strict=True)
    return MonthlyGains(by_key(sar), by_key(plus), by_key(means))


@measured
def _month(
    system: str, seed: int, largest: int | None, with_ours: bool
) -> tuple[dict[Cell, Gain], dict[Cell, Gain], dict[str, float]]:
    import pyarrow as pa

    whole = month(system, seed, largest)
    sar, plus = table1(whole, "sar", list(OTHERS)), []
    if with_ours:
        ours = month(system, seed, largest, (OURS,), from_scratch=False)
        plus = table1(pa.concat_tables([whole, ours]), OURS, list(LABELS))
    first, second = ({(g.other, g.metric): g for g in gains} for gains in (sar, plus))
    return first, second, {m: float(np.nanmean(column(whole, "sar", m))) for m in SIZES}


def _mean(gains: Sequence[Gain]) -> Estimate:
    return median_of([_size(gain) for gain in gains])


def _largest(gains: Sequence[Gain]) -> Estimate:
    percent = [g.largest if g.largest_percent is None else g.largest_percent for g in gains]
    return median_of(percent)


def _size(gain: Gain) -> float:
    return gain.mean if gain.mean_percent is None else gain.mean_percent


def _claims_table1(system: str, drawn: Drawn) -> Iterator[Claim]:
    """For each cell: the sign of the mean gain, told apart from 0 by the seeds' months, each a pair
    of the same jobs; its size; and the size of the largest gain. A loss that the text calls
    negligibly small is one of at most `NEGLIGIBLE` per cent."""
    for (other, metric), gains in drawn.items():
        what = f"{SYSTEMS[system]}, against {OTHERS[other]}, {METRICS[metric][0]}"
        most, _, mean = printed(system, other, metric)
        each = [_size(gain) for gain in gains]
        ours = bootstrap_of(each, np.mean, resamples=RESAMPLES)
        if mean > 0:
            yield claim(
                is_gain(each), f"{what}: SAR is better", ours=ours.words(1),
                published=f"{mean:.1f}", said=SAID_TABLE[metric],
            )  # fmt: skip
        else:
            yield order(
                f"{what}: SAR is at most {NEGLIGIBLE:g} % worse", ours.value >= -NEGLIGIBLE,
                ours.words(1), f"{mean:.1f}", said=SAID_TABLE["negligible"],
            )  # fmt: skip
        for says, number, found in (
            ("by how much", mean, _mean(gains)), ("by how much at most", most, _largest(gains))
        ):  # fmt: skip
            yield value(f"{what}: {says}", number, found.value, NEAR, 1, said=SAID_TABLE[metric])


def _table(title: str, system: str, drawn: Drawn) -> ResultTable:
    head, rows = [title], []
    for label in OTHERS.values():
        head += [f"{label}: max. %", "published", "avg. %", "published"]
    for metric, (name, _) in METRICS.items():
        row = [name]
        for other in OTHERS:
            gains = drawn[other, metric]
            row += [f"{_largest(gains).value:.1f}", f"{printed(system, other, metric)[0]:.1f}"]
            row += [_mean(gains).words(1), f"{printed(system, other, metric)[2]:.1f}"]
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


def _draw_table1(figure: Figure, months: Mapping[str, MonthlyGains], small: MonthlyGains) -> None:
    rows = [(system, SYSTEMS[system], result) for system, result in months.items()]
    rows.append(("tsubame", f"{SYSTEMS['tsubame']},\n≤ {SMALL} nodes", small))
    axes = figure.subplots(len(rows), len(METRICS), sharey="row")
    for row, (system, title, result) in enumerate(rows):
        for here, (metric, (label, _)) in zip(axes[row], METRICS.items(), strict=True):
            ours = [_mean(result.sar[other, metric]) for other in OTHERS]
            said = [printed(system, other, metric)[2] for other in OTHERS]
            here.axhline(0.0, color="#888888", lw=0.8)
            here.plot(said, "D", color="#ee6677", mfc="none", label="published")
            here.errorbar(range(len(ours)), [e.value for e in ours], spans(ours), fmt="o",
                          color="#4477aa", label="ours")  # fmt: skip
            here.set_xticks(range(len(ours)), OTHERS.values(), fontsize="small")
            here.set_xlim(-0.5, len(ours) - 0.5)
            if row == 0:
                here.set_title(label)
        axes[row][0].set_ylabel(f"{title}\nSAR gains, %")
    axes[0][0].legend(fontsize="small")
