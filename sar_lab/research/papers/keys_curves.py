"""The common part of Figs. 6 to 9 of routing-keys-2017: curves of the worst application's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sar_lab.research.papers.claims import Claim, times_as_much
from sar_lab.research.papers.keys_runs import AS_PRINTED, CONGA, ENGINES, ROUND, Setup, worst_of
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import COLOURS, LABELS, band, legend
from sar_lab.research.papers.published import Quote
from sar_lab.research.papers.worded_claims import judged
from sar_lab.research.statistics import Estimate, median_of

UTILIZATIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
PEERS = {"round_us": 1e6 * ROUND, "feedback_us": 1e6 * CONGA.feedback}
"""For the text that the rows share."""
REFERENCE = "nrk"
FITTED = "with a fitted Conga"
Curves = dict[str, dict[float, list[float]]]
"""Engine → x → milliseconds of each seed."""


def curves(setups: Mapping[float, Setup], seeds: Sequence[int]) -> Curves:
    """The curve of every engine; x is the key of `setups`."""
    return {
        engine: {
            x: [1e3 * t for t in worst_of(setup, engine, list(seeds), CONGA)]
            for x, setup in setups.items()
        }
        for engine in (*ENGINES, *AS_PRINTED)
    }


Some = TypeVar("Some")


def with_printed(
    claims_of: Callable[[Mapping[Some, Curves]], list[Claim]], results: Mapping[Some, Curves]
) -> tuple[list[Claim], dict[str, list[Claim]]]:
    """The claims for our keys, and for those that are as printed, by reading."""
    printed = {}
    for nrk in AS_PRINTED[1:]:
        swapped = {
            some: each | {"ark": each[AS_PRINTED[0]], "nrk": each[nrk]}
            for some, each in results.items()
        }
        printed[LABELS[nrk]] = claims_of(swapped)
    return claims_of(results), printed


def ratio(results: Curves, engine: str, other: str, x: float) -> Estimate:
    """How many times longer `engine` takes on the same seeds."""
    return times_as_much(results[engine][x], results[other][x])


def qualified(claims: Sequence[Claim], printed: Mapping[str, Sequence[Claim]]) -> str:
    """What the verdict says: whose keys they are where only ours have all of its claims."""
    lost = any(
        ours.holds and not theirs.holds
        for each in printed.values()
        for ours, theirs in zip(claims, each, strict=True)
    )
    return f"with our keys and shift, {FITTED}" if lost else FITTED


def faster(results: Curves, engine: str, other: str, says: str, said: Quote | None = None) -> Claim:
    """The claim that `engine` takes less time than `other` at every x: it holds if the pairs tell
    the two apart at each x, and fails if they do the other way at any."""
    times = [ratio(results, other, engine, x) for x in results[engine]]
    return judged(
        f"{says}: {LABELS[engine]} faster than {LABELS[other]}",
        by_label(results),
        ours=f"{', '.join(each.words() for each in times)} times as fast",
        said=said,
    )


def by_label(results: Curves) -> dict[str, list[list[float]]]:
    """The name of an engine in claims → its milliseconds at each x."""
    return {LABELS[engine]: list(by_x.values()) for engine, by_x in results.items()}


def table(title: str, results: Curves) -> ResultTable:
    """A row for each engine, a column for each x."""
    columns = {f"{x:g}": x for x in results[REFERENCE]}
    rows = {LABELS[engine]: by_x for engine, by_x in results.items()}
    return median_table(f"{title}, ms", columns, rows, lambda by_x, x: by_x[x], 3)


def figure_of(
    claims_of: Callable[[Mapping[int, Curves]], list[Claim]],
    results: Mapping[int, Curves],
    x: str,
    unit: str = "",
    *,
    published: Mapping[str, tuple[float, float]] | None = None,
) -> Outcome:
    """A panel and a table for each number of applications, over `x`, which is a utilization if it
    has no unit; with one, sizes on a logarithmic axis."""
    panels = {f"{apps} applications": each for apps, each in results.items()}
    claims, printed = with_printed(claims_of, results)
    return Outcome(
        claims,
        qualified=qualified(claims, printed),
        words=PEERS,
        as_printed=printed,
        tables=[table(f"{title}, {unit or x}", each) for title, each in panels.items()],
        draw=lambda figure: draw(figure, panels, x, log=bool(unit), published=published),
    )


def draw(
    figure: Figure,
    panels: Mapping[str, Curves],
    label: str,
    *,
    log: bool = False,
    published: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """Draws times in the upper panels, and what the claims are about in the lower ones: how many
    times as long as NRK each engine takes on the same seeds. `published` has such a point, x and
    ratio, for the panel of a title."""
    places = figure.subplots(2, len(panels), squeeze=False, sharex="col", sharey="row")
    for (above, below), (title, results) in zip(places.T, panels.items(), strict=True):
        for engine, by_x in results.items():
            _curve(above, engine, {x: median_of(draws) for x, draws in by_x.items()})
            if engine != REFERENCE:
                _curve(below, engine, {x: ratio(results, engine, REFERENCE, x) for x in by_x})
        draws = len(next(iter(results[REFERENCE].values())))
        above.set(title=f"{title}, n = {draws}", ylim=0)
        below.axhline(1.0, color=COLOURS[REFERENCE], lw=1.0)
        below.set(xlabel=label, ylim=0)
        if published and title in published:
            below.plot(*published[title], "D", mfc="none", ms=9, color="black", label="published")
        if log:
            ticks = list(results[REFERENCE])
            below.set_xscale("log", base=2)
            below.set_xticks(ticks, [f"{value:g}" for value in ticks])
    places[0][0].set_ylabel("worst application, ms")
    places[1][0].set_ylabel(f"times as long as {LABELS[REFERENCE]}")
    legend(figure, ncols=4)


def _curve(axes: Axes, engine: str, by_x: Mapping[float, Estimate]) -> None:
    """A line with its 95 % intervals as a band; NRK dashed, since it may cover ARK."""
    dashes = {REFERENCE: "--", **dict.fromkeys(AS_PRINTED, ":")}
    style, above = dashes.get(engine, "-"), 3 if engine == REFERENCE else 2
    band(axes, list(by_x), list(by_x.values()), style, color=COLOURS[engine],
         label=LABELS[engine], marker=".", zorder=above)  # fmt: skip
