"""DFSSSP: shortest paths balanced over all pairs of terminals (Domke et al., IPDPS 2011).

The oblivious engine that SAR extends. As in OpenSM's, compute terminals come first, then storage,
then the others, and every route of every terminal raises the weights of its channels. O(S + C) for
each terminal (`weighted_trees.py`).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.routing.routes import Routes
from sar_agent.routing.weighted_trees import EVERYONE, grow_trees, one_lane_trees


class Dfsssp:
    """Oblivious: its routes do not depend on jobs."""

    name = "dfsssp"
    summary = "shortest paths balanced over all pairs, jobs unseen (OpenSM's dfsssp)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        egress = grow_trees(fabric, JobMix(()), *dfsssp_order(fabric))
        return Routes(self.name, fabric.digest, egress[None])


def dfsssp_trees(fabric: Fabric, graph: Graph) -> tuple[U8, DagCache]:
    """uint8[T + S, S] egress ports, and the paths that were used: if possible such that one lane is
    enough for all tables that could be chosen among them."""
    return one_lane_trees(fabric, graph, JobMix(()), *dfsssp_order(fabric), any_choice=True)


def dfsssp_order(fabric: Fabric) -> tuple[I32, U8]:
    """(int32[·] terminals in order, uint8[·] whose routes count for each: everyone's)."""
    leaf = fabric.switch_guid[fabric.terminal_switch]
    order = np.lexsort((fabric.terminal_guid, leaf, fabric.terminal_kind))
    live = order[fabric.is_host_port[order]].astype(np.int32)
    return live, np.full(len(live), EVERYONE, np.uint8)
