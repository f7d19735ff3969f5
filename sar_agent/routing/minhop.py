"""Min-hop: every switch takes, for each LID, its least used port on a shortest path.

After OpenSM's default engine, for comparison: each switch counts the LIDs that it has given to each
port. One rule differs: among ports used equally OpenSM takes the lowest, ours looks one switch
further (`_spread`), which balances better from three levels on. O(S + C) for each destination.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel


class MinHop:
    """Oblivious; each switch counts for itself."""

    name = "minhop"
    summary = "each switch spreads LIDs over its shortest ports (OpenSM's default, but for ties)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        _spread(
            graph_of(fabric),
            new_cache(fabric),
            fabric.destination_switch.astype(np.uint32),
            fabric.destination_port,
            leaf_by_leaf(fabric),
            fabric.terminals,
            np.zeros(max(1, fabric.channels), np.int32),
            egress,
        )
        return Routes(self.name, fabric.digest, egress[None])


def leaf_by_leaf(fabric: Fabric) -> U32:
    """uint32[D]: terminals in the order of their switches' GUIDs and ports, then the switches' own
    LIDs: neighbours take turns, and the order in a file changes no route."""
    guid = fabric.switch_guid[fabric.terminal_switch]
    terminals = np.lexsort((fabric.terminal_switch_port, guid))
    switches = fabric.terminals + np.argsort(fabric.switch_guid)
    return np.concatenate([terminals, switches]).astype(np.uint32)


@kernel
def _spread(
    graph: Graph,
    cache: DagCache,
    root_of: U32,
    last_port: U8,
    dests: U32,
    terminals: int,
    used: I32,
    egress: U8,
) -> None:  # pragma: no cover
    """OpenSM counts LIDs of hosts only: a route to a switch's own LID does not count. Among ports
    used equally it takes the lowest, so that all traffic that comes up one way goes on by one port.
    This takes the port to the switch that fewest routes pass."""
    through = np.zeros(egress.shape[1], np.int32)
    for d in dests:
        row = dag_row(graph, cache, root_of[d])
        order, start, edge = cache.order[row], cache.start[row], cache.edge[row]
        for i in range(1, cache.size[row]):
            v = order[i]
            best = edge[start[i]]
            for e in range(start[i] + 1, start[i + 1]):
                c = edge[e]
                if used[c] < used[best] or (
                    used[c] == used[best] and through[graph.target[c]] < through[graph.target[best]]
                ):
                    best = c
            if d < terminals:
                used[best] += 1
                through[graph.target[best]] += 1
            egress[d, v] = graph.port[best]
        egress[d, root_of[d]] = last_port[d]
