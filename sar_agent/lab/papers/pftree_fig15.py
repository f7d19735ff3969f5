"""pFTree, Fig. 15: what balance by weight costs in separation of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.lab.papers.claims import NEAR, order, value
from sar_agent.lab.papers.outcome import outcome
from sar_agent.lab.papers.pftree_trees import TREES
from sar_agent.lab.papers.receivers import (
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

NAME = "pftree-fig15"
WHERE = "pftree-2016, Fig. 15"
CLASS = "S"
PUBLISHED = (
    "inter-partition interference, 32 nodes: pFTree 192, pFTree-Wt 293 (+52 %); 1,024 nodes: "
    "+86.76 %"
)
SEEDS = 10


def run(seeds: Sequence[int], out: Path) -> Result:
    """The experiments of Fig. 13."""
    found = {(e, t.nodes): experiments(t, e, seeds, "interference") for t in TREES for e in ENGINES}
    more = [
        t.nodes for t in TREES if found["pftree-wt", t.nodes].mean > found["pftree", t.nodes].mean
    ]
    claims = [
        order("pFTree-Wt interferes more on every tree", len(more) == len(TREES),
              f"on {len(more)} of {len(TREES)}"),
        value("32 nodes, pFTree", 192, found["pftree", 32].mean, NEAR),
        value("32 nodes, pFTree-Wt", 293, found["pftree-wt", 32].mean, NEAR),
        order("1,024 nodes: pFTree-Wt nearly twice pFTree",
              1.5 < found["pftree-wt", 1024].mean / max(1.0, found["pftree", 1024].mean) < 2.5,
              f"{found['pftree-wt', 1024].mean:,.0f} against {found['pftree', 1024].mean:,.0f}",
              "+86.76 %"),
    ]  # fmt: skip
    return outcome(
        out / f"{NAME}.png",
        claims,
        f"{HOW} Interference is counted per link and flow; the paper does not say whether it "
        "counts links, flows or both.",
        because="our pFTree separates the partitions fully on these trees",
        tables=[spreads_table("interference", found)],
        draw=lambda figure: _draw(figure, found),
        size=(7.0, 3.6),
    )


def _draw(figure: Figure, found: dict[tuple[str, int], Spread]) -> None:
    axes = figure.subplots()
    error_bars(axes, found, "flows on links of both partitions")
    axes.set(yscale="symlog")
