"""Oblivious-XGFT, Section VII-C: patterns that are no permutations, and their inverses.

A general pattern is a union of permutations. A host that sends several messages shares its own link
in all cases, so only contention in the network counts: messages of one source that meet on a link
count once there, and so do those to one destination (endpoint contention, Section III).
S-mod-k then treats a pattern as D-mod-k treats its inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft import xgft_fabric
from sar_lab.research.papers.claims import value
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.oblivious_permutations import LARGE, Histogram, all_paths
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes

SAID = quotes("oblivious-patterns")
SLIMMED = "xgft:3;4,8,8;1,3,5"
DEGREES = (2, 4, 8)
SAMPLE = 500


def unions(hosts: int, degree: int, count: int, seed: int) -> I32:
    """int32[count, degree, T]: patterns, each a union of `degree` random permutations."""
    random = np.random.default_rng([hosts, degree, seed])
    rows = np.tile(np.arange(hosts, dtype=np.int32), (count * degree, 1))
    return random.permuted(rows, axis=1).reshape(count, degree, hosts)


def inverses(patterns: I32) -> I32:
    """Every message of every pattern turned round."""
    return np.argsort(patterns, axis=2).astype(np.int32)


def network_contention(spec: str, name: str, patterns: I32) -> Histogram:
    """int64[P]: on the worst channel, the messages without those that share an end: the smaller of
    its numbers of sources and destinations."""
    fabric = xgft_fabric(spec)
    hosts, known = all_paths(fabric, name)
    size = fabric.terminals
    worst = np.empty(len(patterns), np.int64)
    for p, pattern in enumerate(patterns):
        to = pattern.ravel()
        source = np.tile(hosts, len(pattern))
        crossed = known[source * size + to]
        on = crossed >= 0
        counts = []
        for end in (source, to):
            ends = np.broadcast_to(end[:, None], crossed.shape)[on]
            once = np.unique(crossed[on].astype(np.int64) * size + ends)
            counts.append(np.bincount(once // size, minlength=fabric.channels))
        worst[p] = np.minimum(*counts).max()
    return worst


@measured
def three(spec: str, degree: int, seed: int) -> list[list[int]]:
    """The contention of S-mod-k, of D-mod-k on the inverses, and of D-mod-k."""
    some = unions(256, degree, SAMPLE, seed)
    cases = (("smodk", some), ("dmodk", inverses(some)), ("dmodk", some))
    return [network_contention(spec, name, each).tolist() for name, each in cases]


def oblivious_patterns(seeds: Sequence[int]) -> Outcome:
    """Unions of permutations on the paper's tree, and on a slimmed one of three levels."""
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
                    said=SAID["equally"],
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
        claims, tables=[ResultTable(head, rows)], draw=lambda figure: _draw(figure, drawn)
    )


def _draw(figure: Figure, drawn: dict[tuple[str, int], tuple[Histogram, Histogram]]) -> None:
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
        axes.set(title=f"{spec}, n = {SAMPLE:,} each", xlabel="contention in the network",
                 ylabel="patterns, %", ylim=(0, None))  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=2, fontsize="small")
