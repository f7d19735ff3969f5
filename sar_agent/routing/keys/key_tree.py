"""The tree for which keys are made: an XGFT, recognised by its cabling, or another fat tree.

On an XGFT routes are digits, one parent a level, and contention follows from counting. On any other
fat tree (parallel, uneven or broken cables) keys are searched for (`search.py`). A fabric that is
no tree is not served.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.updn import tree_order
from sar_agent.routing.updown_paths import Orientation


@dataclass(frozen=True, eq=False)
class KeyTree:
    """A fabric as a tree. It is made once a fabric, because recognising the tree takes longest."""

    fabric: Fabric
    view: XgftView | None
    """None where the fabric is a fat tree but no XGFT."""
    why_not: str = ""
    """Why the fabric is no XGFT; empty where it is one."""

    @cached_property
    def up_channel(self) -> I32:
        """int32[S, largest w]: on an XGFT the channel to the parent with W = j, -1 where there is
        no such parent. Its reverse is the only way down from there."""
        assert self.view is not None
        ports = self.view.up
        behind = self.fabric.channel_by_port[np.arange(len(ports))[:, None], ports]
        channels: I32 = np.where(ports > 0, behind, -1).astype(np.int32)
        return channels

    @cached_property
    def second_channel(self) -> I32:
        """int32[subtrees of height 2, w2, w3]: on an XGFT of three levels or more the channel from
        the switch above leaves with W_2 = a to its parent with W_3 = r."""
        assert self.view is not None
        inside, w = self.view.inside[2], self.view.w
        leaves = np.flatnonzero(self.view.level == 1)
        leaf = leaves[np.unique(inside[leaves], return_index=True)[1]]
        above = self.fabric.channel_target[self.up_channel[leaf, : w[1]]]
        channels: I32 = self.up_channel[above, : w[2]]
        return channels

    @cached_property
    def legal(self) -> tuple[Graph, Orientation]:
        """The channels that lead up, and down. Raises `Unserved` where the fabric is no fat
        tree."""
        graph = graph_of(self.fabric)
        return graph, tree_order(self.fabric, graph)


def key_tree(fabric: Fabric) -> KeyTree:
    """The tree of a fabric. Raises `Unserved` where the fabric is no fat tree, or where two of its
    leaf switches have no switch above both."""
    try:
        view = recognise_xgft(fabric)
    except Unserved as unlike:
        tree = KeyTree(fabric, None, str(unlike))
        try:
            _ = tree.legal
        except Unserved as error:
            raise Unserved(f"routing keys need a fat tree: {error}") from error
        return tree
    if view.height < 2:
        raise Unserved(
            f"routing keys need leaf switches under others; {fabric.name} has one switch"
        )
    return KeyTree(fabric, view)
