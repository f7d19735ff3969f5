"""pFTree, Fig. 14: the number of links that heavy receivers share."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.receivers import by_label, over_trees, panels_outcome
from sar_lab.research.papers.worded_claims import PLAIN, judged

SAID = quotes("pftree-fig14")
PRINTED = {("pftree-printed", 1024): SAID["down"].numbers[0], ("pftree-wt", 1024): 0.0}
"""(engine, nodes) → mean contended links down."""


def pftree_fig14(seeds: Sequence[int]) -> Outcome:
    """The experiments of Fig. 13."""
    down, up = (over_trees(seeds, field) for field in ("links_down", "links_up"))
    worst = max(down["pftree-wt", t.nodes].most for t in TREES)
    claims = [
        value("down, pFTree-Wt: most of all trees", 0, worst, said=SAID["none"]),
        value("down, pFTree: mean, 1,024 nodes", SAID["down"].numbers[0],
              down["pftree-printed", 1024].mean, NEAR, said=SAID["down"]),
        value("down, pFTree: most, 1,024 nodes", SAID["down"].numbers[1],
              down["pftree-printed", 1024].most, NEAR, said=SAID["down"]),
        judged("contended links up: pFTree-Wt more than pFTree as printed on every tree",
               by_label(up), PLAIN, said=SAID["up"]),
    ]  # fmt: skip
    return panels_outcome(
        claims,
        [("down", down, "contended links down", PRINTED), ("up", up, "contended links up", {})],
    )
