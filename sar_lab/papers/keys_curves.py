"""The common part of Figs. 6 to 9 of routing-keys-2017: curves of the worst application's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sar_lab.papers.claims import Claim, order, times_as_much, told_apart
from sar_lab.papers.keys_runs import ENGINES, Setup
from sar_lab.papers.outcome import ResultTable
from sar_lab.papers.pictures import COLOURS, LABELS
from sar_lab.statistics import Estimate, median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UTILIZATIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
HOW = (
    "Max-min fair fluid model without latency; key requests take no time; the speed of a message "
    "follows from its links alone. Hosts of an application are drawn at random, sizes are powers "
    "of two. The adaptive peer is similar to Conga, not Conga itself (docs/research/simulate.md)."
)
Curves = dict[str, dict[float, list[float]]]
"""Engine → x → milliseconds of each seed."""


def curves(setups: Mapping[float, Setup], seeds: Sequence[int]) -> Curves:
    """The curve of every engine; x is the key of `setups`."""
    return {
        engine: {
            x: [1e3 * setup.worst(engine, seed) for seed in seeds] for x, setup in setups.items()
        }
        for engine in ENGINES
    }


def ratio(results: Curves, engine: str, other: str, x: float) -> Estimate:
    """How many times longer `engine` takes on the same seeds."""
    return times_as_much(results[engine][x], results[other][x])


def faster(results: Curves, engine: str, other: str, says: str) -> Claim:
    """The claim that `engine` takes less time than `other` at every x: it holds if the pairs tell
    the two apart at each x, and fails if they do the other way at any."""
    times = [ratio(results, other, engine, x) for x in results[engine]]
    apart = [told_apart(each) for each in times]
    holds = False if False in apart else None if None in apart else True
    ours = f"{', '.join(each.words() for each in times)} times as fast"
    return order(f"{says}: {LABELS[engine]} faster than {LABELS[other]}", holds, ours)


def table(title: str, results: Curves, words: Callable[[float], str]) -> ResultTable:
    """A row for each engine, a column for each x."""
    some = list(results[ENGINES[0]])
    rows = [[LABELS[e], *(median_of(results[e][x]).words(3) for x in some)] for e in ENGINES]
    return ResultTable([f"{title}, ms", *map(words, some)], rows)


def draw(figure: Figure, panels: Mapping[str, Curves], label: str, *, log: bool = False) -> None:
    """Draws the panels beside each other, with confidence intervals as bands."""
    places = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, results) in zip(places, panels.items(), strict=True):
        for engine, by_x in results.items():
            x = list(by_x)
            each = [median_of(draws) for draws in by_x.values()]
            colour = COLOURS[engine]
            axes.plot(
                x,
                [estimate.value for estimate in each],
                color=colour,
                label=LABELS[engine],
                marker=".",
            )
            axes.fill_between(
                x,
                [estimate.low for estimate in each],
                [estimate.high for estimate in each],
                color=colour,
                alpha=0.2,
            )
        axes.set(title=title, xlabel=label, ylim=0)
        if log:
            axes.set_xscale("log", base=2)
            axes.set_xticks(x, [f"{value:g}" for value in x])
    places[0].set_ylabel("sending of the worst application, ms")
    lines, names = places[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=4)
