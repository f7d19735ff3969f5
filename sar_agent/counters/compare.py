"""The predicted load of each link beside the bytes that it carried.

Predictions are shares of a link's speed if all jobs send all the time. Jobs do not, so the two are
compared by rank. For the sentence on single links, one scale is fitted: the share of the predicted
load that the busier links carried (`SCALE_QUANTILE` of the ratios).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.counters.window import CounterWindow
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.util.plural import plural

SCALE_QUANTILE = 0.9
COUNTED_TOP, PREDICTED_TOP = 0.01, 0.05
HOT_SHARE, HOT_FACTOR = 0.3, 2.0
"""A link is hot from this share of its speed; it is reported where that is more than this many
times what the jobs explain."""
RESOLUTION = 1e-4
"""Share of a link's speed below which two links count alike: ports count MADs, too."""
MOST_NAMED = 20
"""Hot links that are reported by name."""


@dataclass(frozen=True)
class LinkCompared:
    """One link."""

    link: str
    predicted: float
    """Load, 1.0 is its speed."""
    explained: float
    """The predicted load at the fitted scale."""
    counted: float
    """The share of its speed that it carried."""


@dataclass(frozen=True)
class JobCompared:
    """One job, and the links that it uses."""

    job: str
    links: int
    worst_link: str
    """The link with the largest predicted load."""
    predicted: float
    counted: float | None
    """Of that link; None where not known."""
    hottest_link: str
    """The link of the job that carried the largest share of its speed; empty where not known."""
    hottest: float | None
    waits_share: float | None
    """Share of all waits in the fabric that its links have; None where no waits are known."""
    weight: float | None = None
    """What its ports sent, as a share of their speed; None where not measured."""


@dataclass(frozen=True)
class Comparison:
    """A window."""

    source: str
    seconds: float
    age: float
    links: int
    """Live channels."""
    known: int
    """Of these, with a counter."""
    rank: float | None
    """Spearman's rank correlation of predicted load and counted share; None where one of them is
    the same on all links."""
    top: float | None
    """Share of the counted top 1 % that was predicted in the top 5 %; None without traffic."""
    counted_max: float
    counted_mean: float
    scale: float
    """Fitted share of the predicted load that links carried."""
    hot: tuple[LinkCompared, ...]
    """Hot but not predicted, the hottest first, at most `MOST_NAMED`."""
    hot_links: int
    """The number of all of them."""
    jobs: tuple[JobCompared, ...]
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def average_ranks(values: NDArray[np.float64]) -> F64:
    """float64[N]: ranks from 1; equal values have the mean of their ranks.

    >>> average_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's coefficient, ties with their mean rank; None if `a` or `b` is constant."""
    if len(a) < 2:
        return None
    first, second = average_ranks(a), average_ranks(b)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.clip(np.corrcoef(first, second)[0, 1], -1.0, 1.0))


def top_share(predicted: F64, counted: F64) -> float | None:
    """The share of the counted top 1 % that is in the predicted top 5 %; None without traffic."""
    if not (counted > 0).any():
        return None
    few = max(1, int(np.ceil(COUNTED_TOP * len(counted))))
    many = max(1, int(np.ceil(PREDICTED_TOP * len(counted))))
    hot = counted >= np.partition(counted, -few)[-few]
    likely = (predicted >= np.partition(predicted, -many)[-many]) & (predicted > 0)
    return float(likely[hot & (counted > 0)].mean())


def fitted_scale(predicted: F64, counted: F64) -> float:
    """The share of the predicted load that the busier links carried; 0 without a prediction."""
    used = predicted > 0
    if not used.any():
        return 0.0
    return float(np.quantile(counted[used] / predicted[used], SCALE_QUANTILE, method="lower"))


def compare(
    fabric: Fabric,
    window: CounterWindow,
    predicted: F64,
    traffic: Traffic | None = None,
) -> Comparison:
    """Compares float64[C] loads, `predicted` for the time of the window, with the window. `traffic`
    has the jobs of now and their links."""
    known = np.flatnonzero(window.known)
    load, counted = predicted[known], window.share[known]
    scale = fitted_scale(load, counted)
    comparable = _comparable(fabric, window, known, load)
    hot = np.flatnonzero((counted >= HOT_SHARE) & (counted > HOT_FACTOR * scale * load))
    hot = hot[np.argsort(-counted[hot], kind="stable")]
    named = tuple(
        LinkCompared(
            fabric.channel_name(int(known[i])),
            float(load[i]),
            float(scale * load[i]),
            float(counted[i]),
        )
        for i in hot[:MOST_NAMED]
    )
    return Comparison(
        source=window.source,
        seconds=window.seconds,
        age=window.ended,
        links=int(fabric.channel_up.sum()),
        known=len(known),
        rank=rank_correlation(*comparable),
        top=top_share(*comparable),
        counted_max=float(counted.max(initial=0.0)),
        counted_mean=float(counted.mean()) if len(known) else 0.0,
        scale=scale,
        hot=named,
        hot_links=len(hot),
        jobs=compare_jobs(fabric, window, predicted, traffic) if traffic else (),
        notes=window.notes,
    )


def _comparable(
    fabric: Fabric, window: CounterWindow, known: NDArray[np.int64], load: F64
) -> tuple[F64, F64]:
    """Loads and counted bytes of the known channels as shares of their speed, equal where they
    differ by no more than sums in another order, or by MADs. All bytes are divided by one length
    of the window, since those of single ports are known to a few ms only."""
    room = fabric.channel_rate[known].astype(np.float64) * 1e9 / 8 * window.seconds
    counted = np.rint(window.sent[known] / (room * RESOLUTION))
    return load.astype(np.float32).astype(np.float64), counted


def compare_jobs(
    fabric: Fabric, window: CounterWindow, predicted: F64, traffic: Traffic
) -> tuple[JobCompared, ...]:
    """The jobs of `traffic` with their links."""
    share, known, waits = window.share, window.known, window.waits
    weights = job_shares(traffic.mix, window)
    all_waits = float(np.nansum(waits))
    found = []
    for job in traffic.mix.whole_jobs:
        links = traffic.links_of(traffic.mix.parts_of(job.id))
        if not len(links):
            continue
        worst = int(links[np.argmax(predicted[links])])
        counted = links[known[links]]
        hottest = int(counted[np.argmax(share[counted])]) if len(counted) else -1
        own = waits[links]
        waited = all_waits > 0 and not np.isnan(own).all()
        found.append(
            JobCompared(
                job=job.id,
                links=len(links),
                worst_link=fabric.channel_name(worst),
                predicted=float(predicted[worst]),
                counted=float(share[worst]) if known[worst] else None,
                hottest_link=fabric.channel_name(hottest) if hottest >= 0 else "",
                hottest=float(share[hottest]) if hottest >= 0 else None,
                waits_share=float(np.nansum(own)) / all_waits if waited else None,
                weight=weights.get(job.id),
            )
        )
    return tuple(found)


def job_shares(mix: JobMix, window: CounterWindow) -> dict[str, float]:
    """What each job's ports sent in the window, as the mean share of their speed; without jobs of
    which no port is known."""
    found = {}
    for job in mix.whole_jobs:
        share = window.terminal_share[job.terminals]
        if not np.isnan(share).all():
            found[job.id] = float(np.nanmean(share))
    return found


def comparison_words(comparison: Comparison) -> str:
    """A window for people."""

    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    lines = [
        f"{comparison.source}: a window of {comparison.seconds:.0f} s that ended "
        f"{comparison.age:.0f} s ago, {comparison.known} of {plural(comparison.links, 'link')}",
        f"rank correlation of predicted load and counted bytes: {number(comparison.rank, '.3f')}",
        f"of the counted top 1 %, predicted in the top 5 %: {number(comparison.top, '.0%')}",
        f"counted: mean {comparison.counted_mean:.1%} of a link's speed, most "
        f"{comparison.counted_max:.1%}; links carried {comparison.scale:.1%} of the predicted load",
    ]
    lines += [f"left out: {note}" for note in comparison.notes]
    if comparison.hot_links:
        lines.append(f"hot but not predicted: {plural(comparison.hot_links, 'link')}")
        lines += [
            f"  {link.link}: counted {link.counted:.1%}, explained by jobs {link.explained:.1%}"
            for link in comparison.hot
        ]
    else:
        lines.append("hot but not predicted: none")
    if comparison.jobs:
        lines.append(f"{'job':>12}  {'links':>6} {'predicted':>9} {'counted':>8} {'hottest':>8} "
                     f"{'waits':>6} {'weight':>7}  worst link")  # fmt: skip
    lines += [
        f"{job.job:>12}  {job.links:6} {job.predicted:9.2f} {number(job.counted, '.1%'):>8} "
        f"{number(job.hottest, '.1%'):>8} {number(job.waits_share, '.0%'):>6} "
        f"{number(job.weight, '.3f'):>7}  {job.worst_link}"
        for job in comparison.jobs
    ]
    return "\n".join(lines)
