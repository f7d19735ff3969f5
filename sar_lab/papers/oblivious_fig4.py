"""Oblivious-XGFT, Fig. 4: the number of routes over each root, for all pairs of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sar_agent.routing.path_routes import PathRoutes
from sar_lab.papers.claims import order, value
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.pictures import COLOURS, LABELS
from sar_lab.papers.registry import ExperimentResult
from sar_lab.papers.slimmed_trees import DRAWN
from sar_lab.papers.xgft_slowdown import choice_of, slimmed
from sar_lab.statistics import median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "oblivious-fig4"
WHERE = "oblivious-xgft-2009, Fig. 4"
CLASS = "E"
PUBLISHED = (
    "XGFT(2;16,16;1,16): S-mod-k and D-mod-k put 3,840 routes on every root. XGFT(2;16,16;1,10): "
    "7,680 on six, 3,840 on four; Random even, r-NCA between the two"
)
SEEDS = 60
ENGINES = ("smodk", "dmodk", "random", "rnca-u", "rnca-d")
Counts = NDArray[np.int64]


def routes_per_root(name: str, roots: int, seed: int = 0) -> Counts:
    """int64[roots]: pairs of hosts under two leaf switches, by the root that joins them."""
    fabric, view = slimmed(roots)
    hosts = np.arange(fabric.terminals, dtype=np.int32)
    source, destination = (each.ravel() for each in np.meshgrid(hosts, hosts))
    leaf = fabric.terminal_switch
    far = leaf[source] != leaf[destination]
    paths = PathRoutes(name, fabric, view, choice_of(name, fabric, view, seed))
    return np.bincount(paths.nca(source[far], destination[far]), minlength=roots)


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """The counts for both trees."""
    counts = {
        (name, roots): [routes_per_root(name, roots, s) for s in (seeds if name in DRAWN else (0,))]
        for name in ENGINES
        for roots in (16, 10)
    }
    spread = {
        key: median_of([float(each.max() - each.min()) for each in draws])
        for key, draws in counts.items()
    }
    mean = 16 * 16 * 240 / 10
    claims = []
    for name in ("smodk", "dmodk"):
        even, uneven = counts[name, 16][0], counts[name, 10][0]
        claims += [
            value(f"{LABELS[name]}, 16 roots: least of a root", 3840, float(even.min())),
            value(f"{LABELS[name]}, 16 roots: most of a root", 3840, float(even.max())),
            value(f"{LABELS[name]}, 10 roots: roots with 7,680", 6, float((uneven == 7680).sum())),
            value(f"{LABELS[name]}, 10 roots: roots with 3,840", 4, float((uneven == 3840).sum())),
        ]
    worst_random = max(abs(each - mean).max() / mean for each in counts["random", 10])
    claims.append(
        order(
            "Random, 10 roots: even (within 5 %)",
            bool(worst_random < 0.05),
            f"within {worst_random:.1%}",
        )
    )
    for name in ("rnca-u", "rnca-d"):
        middle = spread["random", 10].value < spread[name, 10].value < 3840
        claims.append(
            order(f"{LABELS[name]}, 10 roots: less even than Random, more than D-mod-k", middle)
        )
    rows = [
        [
            LABELS[name],
            str(roots),
            f"{median_of([float(each.min()) for each in draws]).words(0)}",
            f"{median_of([float(each.max()) for each in draws]).words(0)}",
        ]
        for (name, roots), draws in counts.items()
    ]
    return outcome(
        out / f"{NAME}.png",
        claims,
        "All ordered pairs of the 256 hosts that a root joins. The paper's H-Rand-U and -D are "
        "our r-NCA-u and -d; that the published tree is XGFT(2;16,16;1,10) is in ERRATA.",
        tables=[ResultTable(["engine", "roots", "least routes of a root", "most"], rows)],
        draw=lambda figure: _draw(figure, counts),
    )


def _draw(figure: Figure, counts: dict[tuple[str, int], list[Counts]]) -> None:
    for axes, roots in zip(figure.subplots(1, 2, sharey=True), (16, 10), strict=True):
        for place, name in enumerate(ENGINES):
            draws = np.array(counts[name, roots])
            box = axes.boxplot(
                [draws.ravel()], positions=[place], widths=0.6, whis=(0, 100), patch_artist=True
            )
            box["boxes"][0].set_facecolor(COLOURS[name])
            box["medians"][0].set_color("black")
        axes.set_xticks(range(len(ENGINES)), [LABELS[name] for name in ENGINES], rotation=20)
        axes.set(title=f"{roots} roots", ylim=(0, 8200))
    figure.axes[0].set_ylabel("routes of a root (all roots, all seeds)")
