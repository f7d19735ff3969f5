"""LNMP: one table of shortest paths, and in each other LID offset paths that are a little longer.

N. Blach et al., "A High-Performance Design, Implementation, Deployment, and Evaluation of The Slim
Fly Network", NSDI 2024 (arXiv 2310.03742). The rules below are those of the authors' published
OpenSM (github.com/spcl/opensm, commit 1c69b59e, `lnmp`), whose code is not used here.

Networks of low diameter have few shortest paths, but many paths that are one hop longer. Every port
has 2^LMC LIDs, and the tables of each offset are a layer. Layer 0 has shortest paths. In any other
layer, pairs of a switch s and a host d get a path one after the other:

    order    first pairs that have the fewest longer paths in earlier layers, else at random
    paths    simple paths of one hop more than the diameter; from the first switch on that has an
             entry for d in this layer, they follow the entries
    choice   the least sum of the weights of its channels
    weights  a channel gets the number of hosts that send over it because of the new entries

Entries that remain are shortest ways into these trees, of least weight: where those meet a longer
path, two hops more than the diameter. Programs send over all LIDs of a port in turns. Several lanes
are necessary; `routing/lanes` assigns them.

Differences: the authors' defaults also admit paths of the diameter's length. On a Slim Fly most
pairs have one such path, which is the shortest, and its sum of weights is nearly always the least:
then 2 % of the pairs of slimfly:5,hosts=4 get another path in a layer. An earlier version's default
was a least length of 3, and so is ours. Layer 0 is our `dfsssp`. Switches' own LIDs have
shortest paths, and entries that remain the fewest hops, where the authors' Dijkstra may go around
over light channels. The random order is the same in every run.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.dfsssp import dfsssp_order
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import FAR, all_hops
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.weighted_trees import grow_trees
from sar_agent.util.kernels import kernel

LONGEST = 4
"""Hops of the longest paths that are searched."""
MOST_PATHS = 20e9
"""Paths that may be looked at in a layer: some minutes of a core."""


class Lnmp:
    """Oblivious; serves networks of a diameter of 3 or less, with LMC 1 or more."""

    name = "lnmp"
    summary = (
        "Slim Fly and other low diameters: longer paths in LID offsets (NSDI 2024); LMC 1 or more"
    )

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` for an LMC of 0, a larger diameter, and networks that are too large."""
        if options.lmc < 1:
            raise Unserved(
                "lnmp has a layer of paths for each LID of a port; it needs an LMC of 1 or more"
            )
        graph = graph_of(fabric)
        hops = all_hops(graph)
        diameter = int(hops[np.ix_(fabric.leaves, fabric.leaves)].max(initial=0))
        if diameter >= LONGEST:
            raise Unserved(
                f"{fabric.name} has hosts {diameter} hops apart, and lnmp serves {LONGEST - 1}; "
                "take sar-plus or dfsssp"
            )
        degree = int(np.bincount(fabric.channel_source, minlength=1).max())
        looks = float(fabric.switches) * fabric.terminals * float(degree) ** diameter
        if looks > MOST_PATHS:
            raise Unserved(
                f"{fabric.name} is too large for lnmp, which would try {looks:.0e} paths"
            )
        egress = grow_trees(fabric, JobMix(()), *dfsssp_order(fabric))
        layers = [egress]
        weight = np.zeros(max(1, fabric.channels))
        longer = np.zeros((fabric.terminals, fabric.switches), np.uint8)
        hosts_at = np.bincount(fabric.terminal_switch, minlength=fabric.switches).astype(np.float64)
        live = np.flatnonzero(fabric.is_host_port)
        target, source = np.meshgrid(live, np.arange(fabric.switches), indexing="ij")
        pairs = np.stack([target.ravel(), source.ravel()], axis=1).astype(np.uint32)
        for layer in range(1, 1 << options.lmc):
            order = np.random.default_rng(layer).permutation(len(pairs))
            some = pairs[order]
            some = some[np.argsort(longer[some[:, 0], some[:, 1]], kind="stable")]
            table = np.full_like(egress, NO_ROUTE)
            table[fabric.terminals :] = egress[fabric.terminals :]
            _longer_paths(
                graph,
                some,
                fabric.destination_switch.astype(np.uint32),
                hosts_at,
                np.uint32(diameter + 1),
                weight,
                longer,
                table,
            )
            layers.append(table)
        for table in layers[1:]:
            _remaining(
                graph,
                hops,
                live.astype(np.uint32),
                fabric.destination_switch.astype(np.uint32),
                fabric.destination_port,
                hosts_at,
                weight,
                table,
            )
        return Routes(self.name, fabric.digest, np.stack(layers))


@kernel
def _longer_paths(
    graph: Graph,
    pairs: U32,
    root_of: U32,
    hosts_at: F64,
    length: np.uint32,
    weight: F64,
    longer: U8,
    table: U8,
) -> None:  # pragma: no cover
    """Fills `table` uint8[D, S] for uint32[·, 2] pairs of a host and a switch."""
    one = np.uint32(1)
    switches = np.uint32(len(graph.offset) - 1)
    way = np.zeros(length + one, np.uint32)
    channel = np.zeros(length + one, np.uint32)
    edge = np.zeros(length + one, np.uint32)
    best_way, best_channel = way.copy(), channel.copy()
    on_way = np.zeros(switches, np.bool_)
    for pair in range(np.uint32(len(pairs))):
        d, start = pairs[pair, 0], pairs[pair, 1]
        root, row = root_of[d], table[d]
        if start == root or row[start] != NO_ROUTE:
            continue
        best = np.inf
        # All simple paths of this length, depth first, in the order of channels.
        depth, total = np.uint32(0), np.zeros(length + one)
        way[0], edge[0] = start, graph.offset[start]
        on_way[start] = True
        while True:
            u = way[depth]
            if depth == length or edge[depth] == graph.offset[u + one]:
                on_way[u] = False
                if depth == 0:
                    break
                depth -= one
                continue
            c = edge[depth]
            edge[depth] += one
            v = graph.target[c]
            if not graph.up[c] or on_way[v]:
                continue
            if row[u] != NO_ROUTE and graph.port[c] != row[u]:
                continue
            # The root ends a path, and only at its full length.
            if (v == root) != (depth + one == length):
                continue
            sum_here = total[depth] + weight[c]
            if sum_here >= best:
                continue
            channel[depth] = c
            way[depth + one] = v
            if v == root:
                best = sum_here
                best_way[: length + one] = way[: length + one]
                best_channel[:length] = channel[:length]
                continue
            depth += one
            total[depth], edge[depth] = sum_here, graph.offset[v]
            on_way[v] = True
        if best == np.inf:
            continue
        longer[d, start] += np.uint8(1)
        senders = 0.0
        for i in range(length):
            u = best_way[i]
            if row[u] == NO_ROUTE:
                senders += hosts_at[u]
            weight[best_channel[i]] += senders
        for i in range(length):
            row[best_way[i]] = graph.port[best_channel[i]]


@kernel
def _remaining(
    graph: Graph,
    hops: U8,
    hosts: U32,
    root_of: U32,
    last_port: U8,
    hosts_at: F64,
    weight: F64,
    table: U8,
) -> None:  # pragma: no cover
    """Gives every switch without an entry the shortest way on, of these the lightest channel. There
    is no loop: a longer path leads through switches with entries only, up to the host's, and a
    switch takes only what is complete."""
    one = np.uint32(1)
    switches = np.uint32(len(graph.offset) - 1)
    by_port = np.zeros((switches, 256), np.uint32)
    for s in range(switches):
        for c in range(graph.offset[s], graph.offset[s + one]):
            by_port[s, graph.port[c]] = c
    length = np.zeros(switches, np.uint32)
    unknown = np.uint32(FAR)
    for d in hosts:
        root, row = root_of[d], table[d]
        row[root] = last_port[d]
        farthest = np.uint8(0)
        for s in range(switches):
            length[s] = unknown
            if hops[s, root] != FAR:
                farthest = max(farthest, hops[s, root])
            if row[s] != NO_ROUTE:
                length[s] = np.uint32(0)
                v = s
                while v != root:
                    v = graph.target[by_port[v, row[v]]]
                    length[s] += one
        for away in range(1, farthest + 1):
            for s in range(switches):
                if hops[s, root] != away or row[s] != NO_ROUTE:
                    continue
                best, chosen, least = np.inf, np.uint32(0), unknown
                for c in range(graph.offset[s], graph.offset[s + one]):
                    there = length[graph.target[c]]
                    if not graph.up[c] or there > least:
                        continue
                    if there < least or weight[c] < best:
                        best, chosen, least = weight[c], np.uint32(c), there
                row[s] = graph.port[chosen]
                length[s] = least + one
                weight[chosen] += hosts_at[s]
