"""The picture of the study `herding`: peaks over the bound by job size, and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sar_lab.research.papers.outcome import Axes, Figure
from sar_lab.research.papers.pictures import band
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
