"""Where Algorithm 1 of sar-2016 lets routes meet on one link, why, and how near sar-plus stays to
the least that is possible.

A machine of 648 hosts is 85 % full of equal jobs on random hosts: job size and oversubscription
vary. Mixes on captured fabrics and the recorded jobs of Leonardo follow where $SAR_DATA names a
folder with them. Every result is divided by a proved lower bound for the same jobs
(`sar_agent/quality/bounds.py`; minimal-hop forwarding tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality import bounds_of, measure
from sar_agent.routing import Engine, Options, load_engine
from sar_lab.opensm_tables import lab_engine
from sar_lab.replay.chain import CachedEngine
from sar_lab.replay.samples import samples_of
from sar_lab.research.papers.claims import Claim, more, order, times_as_much, told_apart
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import band
from sar_lab.research.papers.sar_fig2 import TREES
from sar_lab.research.peers.greedy_trees import greedy_peak
from sar_lab.research.peers.site_inputs import WITHOUT, captured_fabrics, leonardo, site_folder
from sar_lab.research.statistics import median_of

COLOURS = {
    "OpenSM's ftree": "#999999", "sar": "#ee6677", "sar, leaf by leaf": "#ccbb44",
    "sar-plus": "#4477aa", "dfsssp": "#999999",
}  # fmt: skip
Ratios = Mapping[str, Sequence[float]]


def draw_herding(
    figure: Figure,
    sweep: Mapping[tuple[str, int], Ratios],
    loads: Mapping[str, Ratios],
    months: Ratios | None,
    seeds: int,
) -> None:
    """A panel for each tree above; captured fabrics and Leonardo below, where there are any."""
    trees = list(dict.fromkeys(ratio for ratio, _ in sweep))
    below = bool(loads) + bool(months)
    rows = figure.subfigures(2 if below else 1, 1, squeeze=False)[:, 0]
    places = rows[0].subplots(1, len(trees), sharey=True, squeeze=False)[0]
    for axes, ratio in zip(places, trees, strict=True):
        _by_size(axes, {size: point for (r, size), point in sweep.items() if r == ratio})
        axes.set(title=f"{ratio} tree, equal jobs", xlabel="hosts of a job")
    first = rows[0].axes[0]
    first.set_ylabel("most routes on a link / bound")
    rows[0].legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    if below:
        panels = iter(np.atleast_1d(rows[1].subplots(1, below)))
        if loads:
            names = next(iter(loads.values()))
            pooled = {n: [v for point in loads.values() for v in point[n]] for n in names}
            axes = next(panels)
            _distribution(axes, pooled)
            axes.set_title(f"{len(loads)} captured fabrics, {seeds} mixes each")
        if months:
            axes = next(panels)
            _distribution(axes, months)
            axes.set_title(f"Leonardo's jobs (cables made up), {len(months['bound'])} moments")
        rows[1].axes[0].set_ylabel("share of cases")
    figure.suptitle(
        f"n = {seeds} draws a point; medians, bands are their 95 % intervals; 1 is a proved bound",
        fontsize=9,
    )


def _by_size(axes: Axes, points: Mapping[int, Ratios]) -> None:
    sizes = sorted(points)
    for name, colour in list(COLOURS.items())[:4]:
        found = [median_of(points[size][name]) for size in sizes]
        band(axes, sizes, found, marker=".", label=name, color=colour)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])


def _distribution(axes: Axes, ratios: Ratios) -> None:
    for name in (name for name in ratios if name != "bound"):
        ordered = np.sort(ratios[name])
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step(ordered, share, where="post", label=name, color=COLOURS[name])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xlabel="largest load / bound", xscale="log", ylim=(0, 1.02))
    ticks = [1, 1.5, 2, 3, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend(loc="lower right")


SIZES = (4, 16, 64, 128, 256)
"""Hosts of each job."""
BUSY = 0.85
ROUNDS = 32
"""Of the bound by prices."""
FTREE, SAR, LEAFWISE, PLUS = "OpenSM's ftree", "sar", "sar, leaf by leaf", "sar-plus"
LARGER = "sar, larger weight"
SWEPT = (FTREE, SAR, LEAFWISE, LARGER, PLUS)
ENGINES = ("dfsssp", "sar", "sar-plus")
CLOSE = 0.1
"""How far above the bound sar-plus may be."""
EVERY, SKIPPED = 8 * 3600.0, 12 * 3600.0
"""Seconds between moments of Leonardo's jobs; those at the beginning of the records, which do not
know what ran before."""
Point = dict[str, list[float]]
"""Engine → its largest load or number of routes over the bound, one value a draw; `bound` is that
itself."""
Sweep = dict[tuple[str, int], Point]
"""By oversubscription and job size, in routes."""
Loads = dict[str, Point]
"""By fabric, in loads."""


def herding(seeds: Sequence[int]) -> Outcome:
    """The sweep, and the real fabrics and jobs where they are there."""
    sweep: Sweep = {}
    for ratio, spec in TREES.items():
        sweep |= {(ratio, size): swept(spec, size, list(seeds)) for size in SIZES}
    loads, months = real_loads(list(seeds))
    return Outcome(
        claims_of(sweep, loads, months),
        words={"without": "" if loads else WITHOUT},
        tables=[_sweep_table(sweep), *([_load_table(loads, months)] if loads or months else [])],
        draw=lambda figure: draw_herding(figure, sweep, loads, months, len(seeds)),
    )


def equal_jobs(fabric: Fabric, size: int, seed: int) -> JobMix:
    """As many jobs of `size` hosts as fill `BUSY` of the machine, on random hosts."""
    hosts = np.random.default_rng(seed).permutation(fabric.terminals)
    count = int(BUSY * fabric.terminals) // size
    return JobMix.of(make_job(str(j + 1), hosts[j * size : (j + 1) * size]) for j in range(count))


@measured
def swept(spec: str, size: int, seeds: list[int]) -> Point:
    """The peak of every row of `SWEPT` over the bound, in routes, for each seed."""
    fabric = xgft_fabric(spec)
    ftree = CachedEngine(lab_engine("opensm-ftree"))
    point: Point = {name: [] for name in (*SWEPT, "bound")}
    for seed in seeds:
        mix = equal_jobs(fabric, size, seed)
        bound = bounds_of(fabric, mix, rounds=ROUNDS).efi_max
        peak = {
            FTREE: _peak(fabric, mix, ftree),
            SAR: _peak(fabric, mix, load_engine("sar")),
            LEAFWISE: greedy_peak(fabric, mix, leaf_by_leaf=True),
            LARGER: greedy_peak(fabric, mix, larger=True),
            PLUS: _peak(fabric, mix, load_engine("sar-plus")),
        }
        point["bound"].append(float(bound))
        for name, routes in peak.items():
            point[name].append(routes / bound)
    return point


def _peak(fabric: Fabric, mix: JobMix, engine: Engine) -> int:
    return measure(fabric, mix, engine.route(fabric, mix, Options())).effective_efi_max


@measured
def real_loads(seeds: list[int]) -> tuple[dict[str, Point], Point | None]:
    """`loads_of` captured fabrics and of recorded jobs, where $SAR_DATA has them."""
    folder = site_folder()
    if not folder:
        return {}, None
    captured = {
        name: loads_of(fabric, (synthetic_mix(fabric, seed) for seed in seeds))
        for name, fabric in captured_fabrics(folder)
    }
    return captured, leonardo_loads(folder)


def loads_of(fabric: Fabric, mixes: Iterable[JobMix]) -> Point:
    """The largest load of every engine over the bound, for each mix. Lanes are not considered."""
    point: Point = {name: [] for name in (*ENGINES, "bound")}
    engines = {name: CachedEngine(load_engine(name)) for name in ENGINES}
    for mix in mixes:
        bounds = bounds_of(fabric, mix, rounds=ROUNDS)
        point["bound"].append(bounds.load_max)
        for name, engine in engines.items():
            routes = engine.route(fabric, mix, Options())
            most = measure(fabric, mix, routes, bounds=bounds).load_max
            point[name].append(most / bounds.load_max)
    return point


def leonardo_loads(folder: Path) -> Point | None:
    """`loads_of` at moments of Leonardo's recorded jobs, on the stand-in of its network."""
    both = leonardo(folder)
    if both is None:
        return None
    fabric, history = both
    samples = samples_of(fabric, history, EVERY, history.span[0] + SKIPPED)
    return loads_of(fabric, (samples.mix(int(state)) for state in samples.state))


def claims_of(sweep: Sweep, loads: Loads, months: Point | None) -> list[Claim]:
    """What the study states, judged by these numbers alone."""
    claims = []
    for ratio in dict.fromkeys(ratio for ratio, _ in sweep):
        of = {size: point for (r, size), point in sweep.items() if r == ratio}
        says = f"{ratio}, jobs of {min(of)}: SAR's peak is below fat-tree's"
        claims.append(_more(says, of[min(of)], FTREE, SAR))
        large = {size: point for size, point in of.items() if size >= 128}
        claims.append(
            order(
                f"{ratio}, jobs of 128 and 256: SAR's peak is above fat-tree's",
                *_all_more(large.values(), SAR, FTREE),
            )
        )
        middle = [point for size, point in of.items() if size >= 16]
        claims.append(
            order(
                f"{ratio}, jobs of 16 and more: SAR's peak is lower if routes count leaf by leaf",
                *_all_more(middle, SAR, LEAFWISE),
            )
        )
    claims.append(_close("equal jobs: sar-plus at most 10 % or one route above the bound", sweep))
    for name, point in {**loads, **({"Leonardo": months} if months else {})}.items():
        most = max(point["sar-plus"])
        claims += [
            order(
                f"{name}: sar-plus at most 10 % above the bound",
                most <= 1 + CLOSE,
                f"{most:.3f} times the bound at most",
            ),
            _more(f"{name}: SAR's largest load is above sar-plus's", point, "sar", "sar-plus"),
        ]
    if months:
        says = "Leonardo: SAR's largest load is below DFSSSP's"
        claims.append(_more(says, months, "dfsssp", "sar"))
    return claims


def _more(says: str, point: Point, name: str, other: str) -> Claim:
    return more(says, point[name], point[other], what=f"times ({name} by {other})")


def _all_more(points: Iterable[Point], name: str, other: str) -> tuple[bool | None, str]:
    """Whether `name` is above `other` at every point; one point of the other direction is a no."""
    ratios = [times_as_much(point[name], point[other]) for point in points]
    apart = [told_apart(ratio) for ratio in ratios]
    holds = False if False in apart else None if None in apart else True
    return holds, f"{', '.join(r.words() for r in ratios)} times ({name} by {other})"


def _close(says: str, sweep: Sweep) -> Claim:
    draws = [
        (ratio, bound)
        for point in sweep.values()
        for ratio, bound in zip(point[PLUS], point["bound"], strict=True)
    ]
    far = [r for r, b in draws if r > 1 + CLOSE and round(r * b) > round(b) + 1]
    return order(says, not far, f"{len(draws) - len(far)} of {len(draws)} draws")


def _sweep_table(sweep: Sweep) -> ResultTable:
    rows = [
        [
            ratio,
            str(size),
            median_of(point["bound"]).words(0),
            *(median_of(point[name]).words() for name in SWEPT),
        ]
        for (ratio, size), point in sweep.items()
    ]
    return ResultTable(["tree", "hosts of a job", "bound, routes", *SWEPT], rows)


def _load_table(loads: Loads, months: Point | None) -> ResultTable:
    rows = [
        [name, str(len(point["bound"])), *(median_of(point[e]).words(3) for e in ENGINES)]
        for name, point in {**loads, **({"Leonardo": months} if months else {})}.items()
    ]
    return ResultTable(["largest load over the bound", "n", *ENGINES], rows)
