"""Oblivious-XGFT, Sections VII-B and VII-C: how often each level of contention occurs for S-mod-k
and D-mod-k, over permutations and over general patterns.

S-mod-k has the same contention for a permutation as D-mod-k for its inverse, and the inverses of
all permutations are all permutations. So over all permutations the two histograms are equal; over
a sample they are equal if D-mod-k routes the inverse of each drawn permutation.

A general pattern is a union of permutations. A host that sends several messages shares its own link
in all cases, so only contention in the network counts: messages of one source that meet on a link
count once there, and so do those to one destination (endpoint contention, Section III).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_lab.fluid.path_routes import PathRoutes
from sar_lab.research.papers.claims import value
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS, grouped_bars, legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.xgft_slowdown import choice_of

SMALL = "xgft:2;4,2;1,3"
LARGE = "xgft:2;16,16;1,16"
SLIMMED = "xgft:3;4,8,8;1,3,5"
PERMUTATIONS, UNIONS = 20_000, 500
"""Patterns of a sample."""
DEGREES = (2, 4, 8)
"""Permutations of a union."""
Histogram = NDArray[np.int64]
Counts = dict[str, list[int]]
"""Engine → permutations by contention."""


def all_paths(fabric: Fabric, name: str) -> I32:
    """int32[T T, hops]: the channels from s to d in row s T + d, and -1."""
    hosts = np.arange(fabric.terminals, dtype=np.int32)
    view = recognise_xgft(fabric)
    paths = PathRoutes(name, fabric, view, choice_of(name, fabric, view))
    source, destination = (each.ravel() for each in np.meshgrid(hosts, hosts, indexing="ij"))
    return paths.channels(source, destination)


def contention(spec: str, name: str, patterns: I32) -> Histogram:
    """int64[P]: on the worst channel, the messages without those that share an end: the smaller of
    its numbers of sources and destinations. In int32[P, K, T] host s sends to [p, k, s]."""
    fabric = xgft_fabric(spec)
    known, size = all_paths(fabric, name), fabric.terminals
    source = np.tile(np.arange(size, dtype=np.int32), patterns.shape[1])
    worst = np.empty(len(patterns), np.int64)
    for p, pattern in enumerate(patterns):
        to = pattern.ravel()
        crossed = known[source * size + to]
        on = crossed >= 0
        counts = []
        for end in (source, to):
            ends = np.broadcast_to(end[:, None], crossed.shape)[on]
            once = np.unique(crossed[on].astype(np.int64) * size + ends)
            counts.append(np.bincount(once // size, minlength=fabric.channels))
        worst[p] = np.minimum(*counts).max()
    return worst


def unions(hosts: int, degree: int, count: int, seed: int) -> I32:
    """int32[count, degree, T]: patterns, each a union of `degree` random permutations."""
    random = np.random.default_rng([hosts, degree, seed])
    rows = np.tile(np.arange(hosts, dtype=np.int32), (count * degree, 1))
    return random.permuted(rows, axis=1).reshape(count, degree, hosts)


def inverses(patterns: I32) -> I32:
    """Every message of every pattern turned round."""
    return np.argsort(patterns, axis=2).astype(np.int32)


@measured
def all_histograms(seeds: list[int]) -> list[dict[str, list[int]]]:
    """All permutations of the small tree; a sample, with D-mod-k on the inverses; both on it."""
    everything = np.array(list(permutations(range(8))), np.int32)[:, None, :]
    random = np.random.default_rng(seeds)
    some = random.permuted(np.tile(np.arange(256, dtype=np.int32), (PERMUTATIONS, 1)), axis=1)
    some = some[:, None, :]
    by_source = contention(LARGE, "smodk", some)
    cases = (
        (contention(SMALL, "smodk", everything), contention(SMALL, "dmodk", everything)),
        (by_source, contention(LARGE, "dmodk", inverses(some))),
        (by_source, contention(LARGE, "dmodk", some)),
    )
    return [histograms(*case) for case in cases]


def histograms(by_source: Histogram, by_destination: Histogram) -> dict[str, list[int]]:
    """S-mod-k's and D-mod-k's permutations by contention."""
    size = 1 + int(max(by_source.max(), by_destination.max()))
    both = {"smodk": by_source, "dmodk": by_destination}
    return {name: np.bincount(each, minlength=size).tolist() for name, each in both.items()}


@measured
def three(spec: str, degree: int, seed: int) -> list[list[int]]:
    """The contention of S-mod-k, of D-mod-k on the inverses, and of D-mod-k."""
    some = unions(256, degree, UNIONS, seed)
    cases = (("smodk", some), ("dmodk", inverses(some)), ("dmodk", some))
    return [contention(spec, name, each).tolist() for name, each in cases]


def oblivious_permutations(seeds: Sequence[int]) -> Outcome:
    """All permutations on a small tree, and a sample on the tree of the paper."""
    said = quotes("oblivious-permutations")
    all_of_them, sample, apart = all_histograms(list(seeds))
    claims = [
        value(
            f"{title}: permutations that differ",
            0,
            float(np.abs(np.subtract(counts["smodk"], counts["dmodk"])).sum()),
            said=said["same"],
        )
        for title, counts in (
            (f"all 40,320 permutations of {SMALL}", all_of_them),
            (f"{PERMUTATIONS:,} random permutations of {LARGE}, D-mod-k on their inverses", sample),
        )
    ]
    rows = [
        [title, LABELS[name], *(f"{sum(counts[name][c : c + 1]):,}" for c in range(9))]
        for title, counts in (
            (SMALL, all_of_them), (LARGE, sample), (f"{LARGE}, both on the same", apart)
        )
        for name in ("smodk", "dmodk")
    ]  # fmt: skip
    return Outcome(
        claims,
        tables=[ResultTable(["tree", "permutations with contention", *map(str, range(9))], rows)],
        draw=lambda figure: _draw_permutations(figure, all_of_them, sample),
    )


def _draw_permutations(figure: Figure, small: Counts, large: Counts) -> None:
    for axes, counts, title in zip(
        figure.subplots(1, 2), (small, large), (SMALL, LARGE), strict=True
    ):
        some = [str(n) for n in range(len(counts["smodk"]))]
        rows = {LABELS[name]: each for name, each in counts.items()}
        grouped_bars(axes, some, rows, [COLOURS[name] for name in counts])
        axes.set(title=title, xlabel="contention", ylabel="permutations")
        axes.legend()


def oblivious_patterns(seeds: Sequence[int]) -> Outcome:
    """Unions of permutations on the paper's tree, and on a slimmed one of three levels."""
    said = quotes("oblivious-patterns")
    claims, rows, drawn = [], [], {}
    for spec in (LARGE, SLIMMED):
        for degree in DEGREES:
            by_source, back, same = map(np.array, three(spec, degree, seeds[0]))
            title = f"{spec}, {degree} messages a host"
            claims.append(
                value(
                    f"{title}: patterns that differ",
                    0,
                    float((by_source != back).sum()),
                    said=said["equally"],
                )
            )
            drawn[spec, degree] = by_source, same
            rows += [
                [title, name, str(each.min()), f"{each.mean():.3f}", str(each.max())]
                for name, each in (
                    ("S-mod-k", by_source),
                    ("D-mod-k, inverses", back),
                    ("D-mod-k, the same", same),
                )
            ]
    head = ["tree", "contention of the patterns", "least", "mean", "most"]
    return Outcome(
        claims, tables=[ResultTable(head, rows)], draw=lambda figure: _draw_unions(figure, drawn)
    )


def _draw_unions(figure: Figure, drawn: dict[tuple[str, int], tuple[Histogram, Histogram]]) -> None:
    from matplotlib.ticker import MaxNLocator

    for axes, spec in zip(figure.subplots(1, 2), (LARGE, SLIMMED), strict=True):
        for degree in DEGREES:
            for name, found, style in zip(
                ("smodk", "dmodk"), drawn[spec, degree], ("-", "--"), strict=True
            ):
                share = 100 * np.bincount(found) / len(found)
                at = np.flatnonzero(share)
                label = f"{LABELS[name]}, same patterns" if degree == DEGREES[0] else None
                axes.plot(at, share[at], style, marker=".", color=COLOURS[name], label=label)
                if name == "smodk":
                    top = int(share.argmax())
                    axes.text(top, share[top] + 1, f"{degree} a host", fontsize=8, ha="center")
        axes.set(title=f"{spec}, n = {UNIONS:,} each", xlabel="contention in the network",
                 ylabel="patterns, %", ylim=(0, None))  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, ncols=2, fontsize="small")
