"""Oblivious-XGFT, Section VII-B: each level of contention is equally frequent for S-mod-k and
D-mod-k.

S-mod-k has the same contention for a permutation as D-mod-k for its inverse, and the inverses of
all permutations are all permutations. So over all permutations the two histograms are equal; over
a sample they are equal if D-mod-k routes the inverse of each drawn permutation.
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
from sar_lab.research.papers.pictures import COLOURS, LABELS, grouped_bars
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.xgft_slowdown import choice_of

SAID = quotes("oblivious-permutations")
SMALL = "xgft:2;4,2;1,3"
LARGE = "xgft:2;16,16;1,16"
SAMPLE = 20_000
Histogram = NDArray[np.int64]
Counts = dict[str, list[int]]
"""Engine → permutations by contention."""


def all_paths(fabric: Fabric, name: str) -> tuple[I32, I32]:
    """int32[T], all hosts; int32[T T, hops]: the channels from s to d in row s T + d, and -1."""
    hosts = np.arange(fabric.terminals, dtype=np.int32)
    view = recognise_xgft(fabric)
    paths = PathRoutes(name, fabric, view, choice_of(name, fabric, view))
    source, destination = (each.ravel() for each in np.meshgrid(hosts, hosts, indexing="ij"))
    return hosts, paths.channels(source, destination)


def contention(fabric: Fabric, name: str, rows: I32) -> NDArray[np.int64]:
    """int64[P]: most flows on a channel under each permutation, int32[P, T]: rows[p, s] is the
    destination of s. Every host sends and receives one message, so all contention is in the
    network."""
    hosts, known = all_paths(fabric, name)
    counts = np.empty(len(rows), np.int64)
    for p, row in enumerate(rows):
        crossed = known[hosts * fabric.terminals + row]
        counts[p] = np.bincount(crossed[crossed >= 0], minlength=1).max()
    return counts


def histograms(spec: str, rows: I32, other: I32) -> dict[str, Histogram]:
    """S-mod-k over `rows`, D-mod-k over `other`: permutations by contention."""
    fabric = xgft_fabric(spec)
    both = {
        name: contention(fabric, name, each) for name, each in (("smodk", rows), ("dmodk", other))
    }
    size = 1 + max(int(each.max()) for each in both.values())
    return {name: np.bincount(each, minlength=size) for name, each in both.items()}


@measured
def all_histograms(seeds: list[int]) -> list[dict[str, list[int]]]:
    """All permutations of the small tree; a sample, with D-mod-k on the inverses; both on it."""
    everything = np.array(list(permutations(range(8))), np.int32)
    random = np.random.default_rng(seeds)
    some = random.permuted(np.tile(np.arange(256, dtype=np.int32), (SAMPLE, 1)), axis=1)
    cases = (
        (SMALL, everything, everything),
        (LARGE, some, np.argsort(some, axis=1).astype(np.int32)),
        (LARGE, some, some),
    )
    return [{n: h.tolist() for n, h in histograms(*each).items()} for each in cases]


def oblivious_permutations(seeds: Sequence[int]) -> Outcome:
    """All permutations on a small tree, and a sample on the tree of the paper."""
    all_of_them, sample, apart = all_histograms(list(seeds))
    claims = [
        value(
            f"{title}: permutations that differ",
            0,
            float(np.abs(np.subtract(counts["smodk"], counts["dmodk"])).sum()),
            said=SAID["same"],
        )
        for title, counts in (
            (f"all 40,320 permutations of {SMALL}", all_of_them),
            (f"{SAMPLE:,} random permutations of {LARGE}, D-mod-k on their inverses", sample),
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
        draw=lambda figure: _draw(figure, all_of_them, sample),
    )


def _draw(figure: Figure, small: Counts, large: Counts) -> None:
    for axes, counts, title in zip(
        figure.subplots(1, 2), (small, large), (SMALL, LARGE), strict=True
    ):
        some = [str(n) for n in range(len(counts["smodk"]))]
        rows = {LABELS[name]: each for name, each in counts.items()}
        grouped_bars(axes, some, rows, [COLOURS[name] for name in counts])
        axes.set(title=title, xlabel="contention", ylabel="permutations")
        axes.legend()
