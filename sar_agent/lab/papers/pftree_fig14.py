"""pFTree, Fig. 14: on how many links heavy receivers meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.lab.papers.claims import NEAR, order, value
from sar_agent.lab.papers.outcome import outcome
from sar_agent.lab.papers.pftree_trees import TREES
from sar_agent.lab.papers.receivers import (
    DRAWS,
    ENGINES,
    HOW,
    Spread,
    error_bars,
    experiments,
    spreads_table,
)
from sar_agent.lab.papers.registry import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "pftree-fig14"
WHERE = "pftree-2016, Fig. 14"
CLASS = "S"
PUBLISHED = (
    "down: pFTree-Wt none; pFTree 41.1 contended links on average, at most 64 (1,024 nodes). Up: "
    "more contended links with pFTree-Wt, each with less"
)
SEEDS = 10


def run(seeds: Sequence[int], out: Path) -> Result:
    """The experiments of Fig. 13."""
    down, up = (
        {(e, t.nodes): experiments(t, e, seeds, field) for t in TREES for e in ENGINES}
        for field in ("links_down", "links_up")
    )
    means = [(up["pftree-wt", t.nodes].mean, up["pftree-printed", t.nodes].mean) for t in TREES]
    more_up = sum(weighted > printed for weighted, printed in means)
    worst = max(down["pftree-wt", t.nodes].most for t in TREES)
    claims = [
        value("down, pFTree-Wt: most of all trees", 0, worst),
        value("down, pFTree: mean, 1,024 nodes", 41.1, down["pftree-printed", 1024].mean, NEAR),
        value("down, pFTree: most, 1,024 nodes", 64, down["pftree-printed", 1024].most, NEAR),
        order("up: more contended links with pFTree-Wt", more_up == len(TREES),
              f"on {more_up} of {len(TREES)} trees"),
    ]  # fmt: skip
    return outcome(
        out / f"{NAME}.png",
        claims,
        HOW,
        because=DRAWS,
        tables=[spreads_table("down", down), spreads_table("up", up)],
        draw=lambda figure: _draw(figure, down, up),
    )


def _draw(
    figure: Figure, down: dict[tuple[str, int], Spread], up: dict[tuple[str, int], Spread]
) -> None:
    left, right = figure.subplots(1, 2)
    error_bars(left, down, "contended links down")
    error_bars(right, up, "contended links up")
