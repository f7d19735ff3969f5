"""pFTree, Fig. 12: the tree of Fig. 4 with one heavy host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sar_lab.research.papers import pftree_fig4
from sar_lab.research.papers.claims import value
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.pftree_examples import (
    described,
    down_to,
    draw_links,
    hosts_by_link,
    shared_down,
)
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes

SAID = quotes("pftree-fig12")
EXAMPLE = replace(pftree_fig4.EXAMPLE, weights={h: 100.0 if h == "a" else 1.0 for h in "abcdefgh"})
NAME = LABELS["pftree-wt"]
PLACES = {("R1", "L1"): "a", ("R2", "L1"): "bcd", ("R1", "L2"): "gh", ("R2", "L2"): "ef"}


def pftree_fig12(seeds: Sequence[int]) -> Outcome:
    """Routes the example with weights."""
    links = hosts_by_link(EXAMPLE, EXAMPLE.routed("pftree-wt"))
    claims = [
        value(
            f"hosts {' '.join(hosts)} descend from {root}, and no other of {leaf}",
            1,
            float(down_to(links, root, leaf) == hosts),
            said=SAID["heavy" if leaf == "L1" else "second"],
        )
        for (root, leaf), hosts in PLACES.items()
    ]
    claims.append(
        value(
            "links down with hosts of both partitions", 1, len(shared_down(links)), said=SAID["one"]
        )
    )
    return Outcome(
        claims,
        tables=[ResultTable(["down", "to L1", "to L2"], [[NAME, *described(links, ["L1", "L2"])]])],
        draw=lambda figure: draw_links(figure.subplots(), EXAMPLE, links, f"{NAME}, a weighs 100"),
    )
