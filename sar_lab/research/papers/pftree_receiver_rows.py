"""pFTree, Figs. 13 to 15: contention of heavy receivers, contended links, and interference, with
and without weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.pftree_trees import TREES
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.receivers import by_label, over_trees, panels_outcome
from sar_lab.research.papers.worded_claims import PLAIN, judged

PRINTED, WEIGHTED = "pftree-printed", "pftree-wt"


def pftree_fig13(seeds: Sequence[int]) -> Outcome:
    """Experiments with 1 … all victims of a leaf switch as receivers: total contention."""
    said = quotes("pftree-fig13")
    means = dict(zip((32, 1024), said["down"].numbers[::2], strict=False))
    down, up = (over_trees(seeds, field) for field in ("down", "up"))
    worst = max(down[WEIGHTED, t.nodes].most for t in TREES)
    says = "pFTree as printed more than pFTree-Wt on every tree"
    claims = [
        judged(f"down: {says}", by_label(down), PLAIN, said=said["none"]),
        judged(f"up: {says}", by_label(up), PLAIN, said=said["higher"]),
        value("down, pFTree-Wt: most of all trees", 0, worst, said=said["none"]),
        *(
            value(f"down, pFTree: mean, {nodes:,} nodes", mean, down[PRINTED, nodes].mean, NEAR,
                  said=said["down"])
            for nodes, mean in means.items()
        ),
        value("down, pFTree: most, 1,024 nodes", said["most"], down[PRINTED, 1024].most, NEAR),
        *(
            value(f"up, {nodes:,} nodes: pFTree above pFTree-Wt, %", percent,
                  100 * (up[PRINTED, nodes].mean / up[WEIGHTED, nodes].mean - 1), NEAR,
                  said=said["up"])
            for nodes, percent in zip((768, 1024), said["up"].numbers, strict=True)
        ),
    ]  # fmt: skip
    printed = {(PRINTED, nodes): mean for nodes, mean in means.items()}
    printed |= {(WEIGHTED, nodes): 0.0 for nodes in means}
    panels = [
        ("down", down, "total contention down", printed),
        ("up", up, "total contention up", {}),
    ]
    return panels_outcome(claims, panels)


def pftree_fig14(seeds: Sequence[int]) -> Outcome:
    """The same experiments: links that receivers share."""
    said = quotes("pftree-fig14")
    mean, most = said["down"].numbers[:2]
    down, up = (over_trees(seeds, field) for field in ("links_down", "links_up"))
    last, worst = down[PRINTED, 1024], max(down[WEIGHTED, t.nodes].most for t in TREES)
    claims = [
        value("down, pFTree-Wt: most of all trees", 0, worst, said=said["none"]),
        value("down, pFTree: mean, 1,024 nodes", mean, last.mean, NEAR, said=said["down"]),
        value("down, pFTree: most, 1,024 nodes", most, last.most, NEAR, said=said["down"]),
        judged("contended links up: pFTree-Wt more than pFTree as printed on every tree",
               by_label(up), PLAIN, said=said["up"]),
    ]  # fmt: skip
    printed = {(PRINTED, 1024): mean, (WEIGHTED, 1024): 0.0}
    panels = [("down", down, "contended links down", printed), ("up", up, "contended links up", {})]
    return panels_outcome(claims, panels)


def pftree_fig15(seeds: Sequence[int]) -> Outcome:
    """The same experiments: interference."""
    said = quotes("pftree-fig15")
    plain, weighted = said["small"].numbers[:2]
    results = over_trees(seeds, "interference")
    few, many = ([results[e, n].mean for e in (PRINTED, WEIGHTED)] for n in (32, 1024))
    last = 100 * (many[1] / many[0] - 1) if many[0] else math.inf
    claims = [
        judged("interference: pFTree-Wt more than pFTree as printed on every tree",
               by_label(results), PLAIN, said=said["larger"]),
        value("32 nodes, pFTree", plain, few[0], NEAR, said=said["small"]),
        value("32 nodes, pFTree-Wt", weighted, few[1], NEAR, said=said["small"]),
        value("1,024 nodes: pFTree-Wt above pFTree, %", said["large"], last, NEAR),
    ]  # fmt: skip
    printed = {(PRINTED, 32): plain, (WEIGHTED, 32): weighted}
    panel = ("interference", results, "flows on links of both partitions", printed)
    return panels_outcome(claims, [panel])
