"""pFTree, Table 3: the trees of all its simulations, as we build them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric.xgft_view import recognise_xgft
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.pftree_trees import TREES, draw_victims
from sar_lab.research.papers.published import quotes

SAID = quotes("pftree-table3")


def pftree_table3(seeds: Sequence[int]) -> Outcome:
    """Counts nodes, victims and links in the fabrics, not in their specs."""
    counted: list[tuple[str, float, float]] = []
    rows = []
    for tree in TREES:
        draw = draw_victims(tree, 0)
        view = recognise_xgft(draw.fabric)
        fabric = draw.fabric
        per_leaf = np.unique(fabric.terminal_switch[draw.victims], return_counts=True)[1]
        ways_up = np.bincount(fabric.channel_source)[fabric.leaves]
        over = fabric.terminals_at[fabric.leaves] / ways_up
        counted += [
            (f"{tree.nodes} nodes: counted", tree.nodes, fabric.terminals),
            (f"{tree.nodes} nodes: victims", tree.victims, len(draw.victims)),
            (f"{tree.nodes} nodes: hosts a way up", tree.oversubscription, float(over.max())),
        ]
        rows.append(
            [
                str(fabric.terminals),
                f"XGFT(2;{view.m[0]},{view.m[1]};1,{view.w[1]})",
                f"{over.max():g}:1",
                str(len(draw.victims)),
                f"{per_leaf.min()} … {per_leaf.max()}",
            ]
        )
    if wrong := [what for what, printed, ours in counted if printed != ours]:
        raise ValueError(f"the trees are not those of Table 3: {', '.join(wrong)}")
    return Outcome(
        [],
        tables=[
            ResultTable(["nodes", "tree", "oversubscribed", "victims", "under each leaf"], rows)
        ],
    )
