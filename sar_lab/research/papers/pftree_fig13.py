"""pFTree, Fig. 13: total contention of heavy receivers, with and without weights."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.receivers import by_label, over_trees, panels_outcome
from sar_lab.research.papers.worded_claims import PLAIN, judged

SAID = quotes("pftree-fig13")
_MEANS = SAID["down"].numbers
PRINTED = {("pftree-printed", 32): _MEANS[0], ("pftree-printed", 1024): _MEANS[2],
           ("pftree-wt", 32): 0.0, ("pftree-wt", 1024): 0.0}  # fmt: skip
"""(engine, nodes) → mean contention down."""


def pftree_fig13(seeds: Sequence[int]) -> Outcome:
    """Experiments with 1 … all victims of a leaf switch as receivers."""
    down, up = (over_trees(seeds, field) for field in ("down", "up"))
    more = {
        n: 100 * (up["pftree-printed", n].mean / up["pftree-wt", n].mean - 1) for n in (768, 1024)
    }
    worst = max(down["pftree-wt", t.nodes].most for t in TREES)
    says = "pFTree as printed more than pFTree-Wt on every tree"
    claims = [
        judged(f"down: {says}", by_label(down), PLAIN, said=SAID["none"]),
        judged(f"up: {says}", by_label(up), PLAIN, said=SAID["higher"]),
        value("down, pFTree-Wt: most of all trees", 0, worst, said=SAID["none"]),
        *(
            value(f"down, pFTree: mean, {nodes:,} nodes", mean, down[engine, nodes].mean, NEAR,
                  said=SAID["down"])
            for (engine, nodes), mean in PRINTED.items()
            if engine == "pftree-printed"
        ),
        value("down, pFTree: most, 1,024 nodes", SAID["most"],
              down["pftree-printed", 1024].most, NEAR),
        *(
            value(f"up, {nodes:,} nodes: pFTree above pFTree-Wt, %", percent, more[nodes], NEAR,
                  said=SAID["up"])
            for nodes, percent in zip((768, 1024), SAID["up"].numbers, strict=True)
        ),
    ]  # fmt: skip
    return panels_outcome(
        claims,
        [("down", down, "total contention down", PRINTED), ("up", up, "total contention up", {})],
    )
