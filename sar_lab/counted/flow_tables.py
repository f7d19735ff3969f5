"""A peer after AFAR (Smith et al., SC18): routes for the flows that were counted.

AFAR reroutes a production fat tree by measured flows. Here: destinations in the order of their
counted bytes, and for each a tree of shortest paths whose fullest link, by the bytes placed so far,
is least full. It knows every pair of hosts, storage too, where sar-plus knows jobs; it does not
know the phases. AFAR's own code is not to be had, so this is *like* it, not it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_lab.counted.busy_cluster import BusyCluster
from sar_lab.trace.play_trace import GBIT


def counted_flows(fabric: Fabric, cluster: BusyCluster) -> F64:
    """float64[S, T], Gbit: what hosts at each leaf switch have sent to each terminal."""
    sent = np.zeros((fabric.switches, fabric.terminals))
    for program, terminal in zip(cluster.trace.programs, cluster.placement, strict=True):
        for phase in program.phases:
            leaf = fabric.terminal_switch[terminal[phase.pairs[:, 0]]]
            np.add.at(sent, (leaf, terminal[phase.pairs[:, 1]]), phase.size * GBIT)
    return sent


def flow_routes(fabric: Fabric, sent: F64) -> Routes:
    """Tables for `sent`; destinations without counted traffic keep dfsssp's."""
    base = load_engine("dfsssp").route(fabric, JobMix(()), Options())
    egress: U8 = base.egress[0].copy()
    leaf = fabric.terminal_switch.astype(np.int64)
    sent = sent.copy()
    sent[leaf, np.arange(fabric.terminals)] = 0.0  # never leaves the switch
    full = np.zeros(fabric.channels)
    out = [np.flatnonzero((fabric.channel_source == v) & fabric.channel_up).tolist()
           for v in range(fabric.switches)]  # fmt: skip
    target, port = fabric.channel_target.tolist(), fabric.channel_port.tolist()
    rate = fabric.channel_rate.astype(np.float64)
    order = np.argsort(-sent.sum(axis=0), kind="stable")
    for d in order[sent.sum(axis=0)[order] > 0].tolist():
        hops = _hops(fabric, int(leaf[d]), out)
        cost = {int(leaf[d]): (0.0, 0.0)}
        parent: dict[int, int] = {}
        for v in sorted(hops, key=lambda v: hops[v])[1:]:
            best = min(
                (
                    (max(cost[target[c]][0], full[c] / rate[c]), cost[target[c]][1] + full[c], c)
                    for c in out[v]
                    if hops.get(target[c], -1) == hops[v] - 1
                ),
            )
            cost[v], parent[v] = best[:2], best[2]
            egress[d, v] = port[best[2]]
        for v in np.flatnonzero(sent[:, d]).tolist():
            here = v
            while here in parent:
                full[parent[here]] += sent[v, d]
                here = target[parent[here]]
    return Routes("afar-like", fabric.digest, egress[None])


def _hops(fabric: Fabric, root: int, out: list[list[int]]) -> dict[int, int]:
    """Hops of each switch to `root`; channels go both ways."""
    hops, wave = {root: 0}, [root]
    while wave:
        found = []
        for v in wave:
            for c in out[v]:
                u = int(fabric.channel_target[c])
                if u not in hops:
                    hops[u] = hops[v] + 1
                    found.append(u)
        wave = found
    return hops
