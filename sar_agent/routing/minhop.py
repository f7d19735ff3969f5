"""Min-hop, as OpenSM's default engine: every switch takes, for each LID, its least used port on a
shortest path, the lowest of those used equally.

After `osm_ucast_mgr.c` and `osm_switch_recommend_path` of OpenSM 3.3.23: each switch counts for
itself the LIDs of hosts that it has given to each port; a switch's own LID does not count. With the
same order of destinations its tables are OpenSM's own, entry by entry
(`tests/live/test_minhop_live.py`). O(S + C) for each destination.

Weak spot: OpenSM keeps an entry that is still on a shortest path when it routes again after a
change of the fabric. This is the table of an OpenSM that starts on the fabric as it is.
With LIDs of several offsets (LMC) OpenSM also spreads those of one port; ours are alike.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.destination_order import opensm_order
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel


class MinHop:
    """Oblivious; each switch counts for itself."""

    name = "minhop"
    summary = "each switch spreads LIDs over its shortest ports (OpenSM's default)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        _spread(
            graph_of(fabric),
            new_cache(fabric),
            fabric.destination_switch.astype(np.uint32),
            fabric.destination_port,
            opensm_order(fabric),
            int(fabric.terminal_up.sum()),
            np.zeros(max(1, fabric.channels), np.int32),
            egress,
        )
        return Routes(self.name, fabric.digest, egress[None])


@kernel
def _spread(
    graph: Graph,
    cache: DagCache,
    root_of: U32,
    last_port: U8,
    dests: U32,
    counted: int,
    used: I32,
    egress: U8,
) -> None:  # pragma: no cover
    """The first `counted` destinations count. A switch's channels are in the order of its ports, so
    the first of those used least is the lowest. Switches count each for itself."""
    for n in range(len(dests)):
        d = dests[n]
        row = dag_row(graph, cache, root_of[d])
        order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
        for i in range(1, cache.size[row]):
            best = edge[start[i]]
            for e in range(start[i] + 1, start[i + 1]):
                if used[edge[e]] < used[best]:
                    best = edge[e]
            if n < counted:
                used[best] += 1
            egress[d, order[i]] = graph.port[best]
        egress[d, root_of[d]] = last_port[d]
