"""pFTree, Fig. 15: balancing by weight separates partitions less."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.receivers import by_label, over_trees, panels_outcome
from sar_lab.research.papers.worded_claims import PLAIN, judged

SAID = quotes("pftree-fig15")
PRINTED = dict(zip((("pftree-printed", 32), ("pftree-wt", 32)), SAID["small"].numbers,
                   strict=False))  # fmt: skip
"""(engine, nodes) → mean interference."""
NODES = [tree.nodes for tree in TREES]


def pftree_fig15(seeds: Sequence[int]) -> Outcome:
    """The experiments of Fig. 13."""
    results = over_trees(seeds, "interference")
    means = {n: (results["pftree-printed", n].mean, results["pftree-wt", n].mean) for n in NODES}
    last = 100 * (means[1024][1] / means[1024][0] - 1) if means[1024][0] else math.inf
    claims = [
        judged("interference: pFTree-Wt more than pFTree as printed on every tree",
               by_label(results), PLAIN, said=SAID["larger"]),
        value("32 nodes, pFTree", PRINTED["pftree-printed", 32], means[32][0], NEAR,
              said=SAID["small"]),
        value("32 nodes, pFTree-Wt", PRINTED["pftree-wt", 32], means[32][1], NEAR,
              said=SAID["small"]),
        value("1,024 nodes: pFTree-Wt above pFTree, %", SAID["large"], last, NEAR),
    ]  # fmt: skip
    panel = ("interference", results, "flows on links of both partitions", PRINTED)
    return panels_outcome(claims, [panel])
