"""pFTree, Fig. 13: total contention of heavy receivers, with and without weights."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.receivers import HOW, by_label, over_trees, panels_outcome
from sar_lab.research.papers.worded_claims import PLAIN, judged

WHERE = "pftree-2016, Fig. 13"
CLASS = "E"
PUBLISHED = (
    "down: pFTree-Wt none at all; pFTree 2 on average (32 nodes) … 8.6 (1,024), at most 192. Up: "
    "pFTree 10.7 % (768) and 14.64 % (1,024) more than pFTree-Wt"
)
SEEDS = 5
PRINTED = {("pftree-printed", 32): 2.0, ("pftree-printed", 1024): 8.6, ("pftree-wt", 32): 0.0,
           ("pftree-wt", 1024): 0.0}  # fmt: skip
"""(engine, nodes) → mean contention down."""


def run(seeds: Sequence[int]) -> Outcome:
    """Experiments with 1 … all victims of a leaf switch as receivers."""
    down, up = (over_trees(seeds, field) for field in ("down", "up"))
    more = {
        n: 100 * (up["pftree-printed", n].mean / up["pftree-wt", n].mean - 1) for n in (768, 1024)
    }
    worst = max(down["pftree-wt", t.nodes].most for t in TREES)
    claims = [
        *(
            judged(
                f"{way}: pFTree as printed more than pFTree-Wt on every tree", by_label(each), PLAIN
            )
            for way, each in (("down", down), ("up", up))
        ),
        value("down, pFTree-Wt: most of all trees", 0, worst),
        *(
            value(f"down, pFTree: mean, {nodes:,} nodes", mean, down[engine, nodes].mean, NEAR)
            for (engine, nodes), mean in PRINTED.items()
            if engine == "pftree-printed"
        ),
        value("down, pFTree: most, 1,024 nodes", 192, down["pftree-printed", 1024].most, NEAR),
        value("up, 768 nodes: pFTree above pFTree-Wt, %", 10.7, more[768], NEAR),
        value("up, 1,024 nodes: pFTree above pFTree-Wt, %", 14.64, more[1024], NEAR),
    ]  # fmt: skip
    return panels_outcome(
        claims,
        f"{HOW} The printed mean of 8.6 cannot be: for the same experiments Fig. 14 prints 41.1 "
        "contended links on average, and each adds at least 1 (pages/not-reproduced.md).",
        [
            ("down", down, "total contention down", PRINTED),
            ("up", up, "total contention up", {}),
        ],
    )
