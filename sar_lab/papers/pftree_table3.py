"""pFTree, Table 3: the trees of all its simulations, as we build them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.fabric.xgft_view import recognise_xgft
from sar_lab.papers.claims import value
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.pftree_trees import TREES, draw_victims
from sar_lab.papers.registry import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "pftree-table3"
WHERE = "pftree-2016, Table 3"
CLASS = "E"
PUBLISHED = (
    "nodes/victims 32/8, 48/12, 64/16, 128/32, 192/48, 256/64, 512/128, 768/192, 1024/256, "
    "oversubscribed 2:1, 3:1 and 4:1"
)
SEEDS = 0


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
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
    return outcome(
        out / f"{NAME}.png",
        [value(*row) for row in counted],
        "An input of the other rows; labels are recognised from the cabling.",
        tables=[
            ResultTable(["nodes", "tree", "oversubscribed", "victims", "under each leaf"], rows)
        ],
        draw=lambda figure: _draw(figure, counted),
        size=(8.0, 3.0),
    )


def _draw(figure: Figure, counted: Sequence[tuple[str, float, float]]) -> None:
    """Draws the counted values over the published ones."""
    per_tree = ("nodes", "victims", "hosts a way up")
    for at, (axes, what) in enumerate(zip(figure.subplots(1, 3), per_tree, strict=True)):
        measured = counted[at :: len(per_tree)]
        names, printed, ours = zip(*measured, strict=True)
        axes.plot(printed, "D", color="#ee6677", mfc="none", label="published")
        axes.plot(ours, ".", color="#4477aa", label="ours")
        axes.set_xticks(range(len(measured)), [name.split()[0] for name in names], rotation=90)
        axes.set_title(what)
        axes.set_yscale("log" if at < 2 else "linear")
    figure.axes[0].legend(fontsize="small")
    figure.axes[1].set_xlabel("nodes of the tree")
