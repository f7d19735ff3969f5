"""Routing Keys, Figs. 6 to 9: the worst application's time, over utilization or message size: six
applications of 36 hosts on 216 (Fig. 6), and 2, 8 or 32 on 1,728 with mixed sizes (7), with
messages of 32 KB (8), and with the same data in fewer, larger messages (9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from sar_lab.research.papers.claims import NEAR, Claim, times_as_much, value
from sar_lab.research.papers.compared import PLAIN, Compared, claim, compared, grows
from sar_lab.research.papers.keys_runs import (
    AS_PRINTED,
    CONGA,
    ENGINES,
    KILO,
    LARGE,
    ROUND,
    SMALL,
    Setup,
    worst_of,
)
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import COLOURS, LABELS, band, legend
from sar_lab.research.papers.published import Quote, quotes
from sar_lab.research.statistics import Estimate, median_of
from sar_lab.research.trace.adaptive import AdaptiveRouting

UTILIZATIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
PEERS = {"round_us": 1e6 * ROUND, "feedback_us": 1e6 * CONGA.feedback}
"""For the text that the rows share."""
REFERENCE = "nrk"
FITTED = "with a fitted Conga"
READINGS = {
    "NRK as printed, fewest flows": ("ark-printed", "nrk-printed"),
    "NRK as printed, own links": ("ark-printed", "nrk-printed-links"),
    "ARK as printed, start drawn": ("ark-printed-drawn", "nrk-printed-links"),
}
"""ARK and NRK of each reading of the print; NRK shifts a key wherever it begins."""
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
    printed = {
        label: claims_of(
            {some: each | {"ark": each[ark], "nrk": each[nrk]} for some, each in results.items()}
        )
        for label, (ark, nrk) in READINGS.items()
    }
    return claims_of(results), printed


def ratio(results: Curves, engine: str, other: str, x: float) -> Estimate:
    """How many times longer `engine` takes on the same seeds."""
    return times_as_much(results[engine][x], results[other][x])


def qualified(claims: Sequence[Claim], printed: Mapping[str, Sequence[Claim]]) -> str:
    """What the verdict says: whose keys they are where no reading of the print has all claims that
    ours have, and which reading does where some do not."""
    having = [
        label
        for label, each in printed.items()
        if all(theirs.holds for ours, theirs in zip(claims, each, strict=True) if ours.holds)
    ]
    if len(having) == len(printed):
        return FITTED
    how = f"in one reading of the print ({having[0]})" if having else "with our keys and shift"
    return f"{how}, {FITTED}"


def faster(results: Curves, engine: str, other: str, says: str, said: Quote | None = None) -> Claim:
    """The claim that `engine` takes less time than `other` at every x: it holds if the pairs tell
    the two apart at each x, and fails if they do the other way at any."""
    times = [ratio(results, other, engine, x) for x in results[engine]]
    at = at_each_x(results)
    return claim(
        at[engine] < at[other],
        f"{says}: {LABELS[engine]} faster than {LABELS[other]}",
        ours=f"{', '.join(each.words() for each in times)} times as fast",
        said=said,
    )


def at_each_x(results: Curves) -> dict[str, Compared]:
    """Engine → its milliseconds at each x."""
    return compared({engine: list(by_x.values()) for engine, by_x in results.items()})


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
    legend(figure, ncols=4 if len(panels) > 1 else 2)


def _curve(axes: Axes, engine: str, by_x: Mapping[float, Estimate]) -> None:
    """A line with its 95 % intervals as a band; NRK dashed, since it may cover ARK."""
    dashes = {REFERENCE: "--", **dict.fromkeys(AS_PRINTED, ":")}
    style, above = dashes.get(engine, "-"), 3 if engine == REFERENCE else 2
    band(axes, list(by_x), list(by_x.values()), style, color=COLOURS[engine],
         label=LABELS[engine], marker=".", zorder=above)  # fmt: skip


SAID_6 = quotes("routing-keys-fig6")


def routing_keys_fig6(seeds: Sequence[int]) -> Outcome:
    """Runs with messages of 4 to 256 KB and four rounds of six phases."""
    setups = {u: Setup(SMALL, 6, u, iterations=4) for u in UTILIZATIONS}
    results = curves(setups, seeds)
    claims, printed = with_printed(_claims_6, {6: results})
    return Outcome(
        claims,
        qualified=qualified(claims, printed),
        words=PEERS,
        as_printed=printed,
        tables=[table("utilization", results), peers(setups, results, seeds)],
        draw=lambda figure: draw(figure, {"216 hosts, 6 applications": results}, "utilization"),
    )


def _claims_6(by_apps: Mapping[int, Curves]) -> list[Claim]:
    """What the text says that the figure shows."""
    results = by_apps[6]
    gains = [ratio(results, "dmodk", "nrk", u).value for u in UTILIZATIONS]
    lowest = "NRK's gain over D-mod-k at the lowest utilization"
    return [
        faster(results, "nrk", "ark", "mixed sizes", SAID_6["nrk"]),
        faster(results, "ark", "dmodk", "mixed sizes", SAID_6["ark"]),
        faster(results, "dmodk", "conga", "mixed sizes", SAID_6["conga"]),
        claim(
            Compared(gains[1:], PLAIN) < gains[0],
            f"{lowest} higher than that at every other utilization",
            ours=", ".join(f"{gain:.2f}" for gain in gains),
            said=SAID_6["low"],
        ),
    ]


def peers(setups: dict[float, Setup], results: Curves, seeds: Sequence[int]) -> ResultTable:
    """How the adaptive peer depends on the parameters that the paper does not print."""
    rows = []
    for flowlet, feedback in product((math.inf, 64 * KILO), (20e-6, 160e-6, 1e-3, 10e-3)):
        peer = AdaptiveRouting(flowlet, feedback)
        words = "a message" if flowlet == math.inf else f"{flowlet / KILO:g} KB"
        times = [
            times_as_much(
                [1e3 * t for t in worst_of(setup, "conga", list(seeds), peer)], results["dmodk"][u]
            )
            for u, setup in setups.items()
        ]
        rows.append([f"{words}, {1e6 * feedback:g} µs", *(each.words() for each in times)])
    heads = [f"{u:g}" for u in setups]
    return ResultTable(["flowlet, loads of the last …: peer against D-mod-k, at", *heads], rows)


SAID_7 = quotes("routing-keys-fig7")
APPLICATIONS = (2, 8, 32)


def routing_keys_fig7(seeds: Sequence[int]) -> Outcome:
    """Runs with messages of 4 to 256 KB."""
    results = {
        apps: curves({u: Setup(LARGE, apps, u) for u in UTILIZATIONS}, seeds)
        for apps in APPLICATIONS
    }
    printed = {"2 applications": (0.1, SAID_7["times"].number)}
    return figure_of(_claims_7, results, "utilization", published=printed)


def _claims_7(results: Mapping[int, Curves]) -> list[Claim]:
    """What the text says that the figure shows."""
    times = {e: ratio(results[2], e, "ark", 0.1) for e in ("dmodk", "conga")}
    gain = [ratio(results[apps], "ark", "nrk", 0.1) for apps in APPLICATIONS]
    low = at_each_x({engine: {0.1: by_x[0.1]} for engine, by_x in results[2].items()})
    return [
        *(
            value(f"2 applications, 10 %: {LABELS[e]} against ARK", SAID_7["times"],
                  times[e].value, NEAR)
            for e in times
        ),
        claim(low["nrk"].within(0.05, low["ark"]), "2 applications, 10 %: NRK within 5 % of ARK",
              ours=gain[0].words(), said=SAID_7["negligible"]),
        claim(grows([[each.value for each in gain]]),
              "10 %: NRK's gain over ARK grows with applications",
              ours=", ".join(g.words() for g in gain), said=SAID_7["further"]),
        *(
            faster(results[apps], "nrk", other, f"{apps} applications", SAID_7["all"])
            for other in ("dmodk", "conga")
            for apps in APPLICATIONS
        ),
        *(
            faster(results[a], "nrk", "ark", f"{a} applications", SAID_7["further"])
            for a in APPLICATIONS[1:]
        ),
    ]  # fmt: skip


SAID_8 = quotes("routing-keys-fig8")
SIZES_8 = (32 * KILO, 32 * KILO)


def routing_keys_fig8(seeds: Sequence[int]) -> Outcome:
    """Runs with 2, 8 and 32 applications."""
    results = {
        apps: curves({u: Setup(LARGE, apps, u, SIZES_8) for u in UTILIZATIONS}, seeds)
        for apps in APPLICATIONS
    }
    return figure_of(_claims_8, results, "utilization")


def _claims_8(results: Mapping[int, Curves]) -> list[Claim]:
    """What the text says that the figure shows."""
    claims = []
    for apps, each in results.items():
        times = [ratio(each, "dmodk", "ark", u) for u in UTILIZATIONS]
        at = at_each_x(each)
        claims.append(
            claim(
                at["dmodk"].within(0.2, at["ark"]),
                f"{apps} applications: D-mod-k within 20 % of ARK",
                ours=f"{', '.join(each.words() for each in times)} times ARK",
                said=SAID_8["comparable"],
            )
        )
    return claims + [
        faster(results[a], "nrk", other, f"{a} applications", SAID_8["advantage"])
        for other, some in (("dmodk", APPLICATIONS), ("ark", APPLICATIONS[1:]))
        for a in some
    ]


SAID_9 = quotes("routing-keys-fig9")
SIZES_9 = (16, 64, 256)
"""KB; each rank sends 256 KB in each direction in total."""
UTILIZATION = 0.3
"""The paper does not give it."""


def routing_keys_fig9(seeds: Sequence[int]) -> Outcome:
    """Runs with 2, 8 and 32 applications."""
    results = {
        apps: curves({float(size): _same_data(apps, size) for size in SIZES_9}, seeds)
        for apps in APPLICATIONS
    }
    return figure_of(_claims_9, results, "KB a message", "KB")


def _claims_9(results: Mapping[int, Curves]) -> list[Claim]:
    """What the text says that the figure shows."""
    claims = []
    for apps, each in results.items():
        for engine in ENGINES:
            small, large = each[engine][16.0], each[engine][256.0]
            gain, by_size = times_as_much(small, large), compared({"16": [small], "256": [large]})
            claims.append(
                claim(
                    by_size["256"] < by_size["16"],
                    f"{apps} applications, {LABELS[engine]}: 256 KB faster than 16 KB",
                    ours=f"{gain.words()} times as fast",
                    said=SAID_9["larger"],
                )
            )
        claims += [
            faster(each, "nrk", other, f"{apps} applications", SAID_9["all"])
            for other in ("conga", "dmodk", "ark")
            if (apps, other) != (2, "ark")  # Fig. 7: with 2 applications the two are alike
        ]
    return claims


def _same_data(applications: int, size: int) -> Setup:
    both = (size * KILO, size * KILO)
    return Setup(LARGE, applications, UTILIZATION, both, SIZES_9[-1] // size)
