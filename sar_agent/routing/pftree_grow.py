"""The kernel of the pFTree family: the cheapest legal tree of one destination after the other.

The rules of pftree-2016 are digits of one price (see `pftree.py`). O(S + C) for each destination.

The paper marks switches and chooses ports switch by switch. Here links are marked, because "shares
no link" is what its policy promises, and whole paths are compared: each leaf switch takes its
cheapest one. With weights, all routes to a host descend over one chain of links, as in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import F64, I32, U8, U32, Bool
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.updown_paths import Orientation, RootDistances, legal_tree
from sar_agent.util.kernels import kernel

PHY = 0
SEVERAL = np.int32(-2)
NOBODY = np.int32(-1)

# Digits of a price. Sums over ten hops stay below the next digit, and all in float64's 53 bits.
MARKED = 1.0
"""The price of a switch that the destination's partition does not use yet; one that n routes of the
partition pass costs 1/(n + 1) of it, so that of several marked switches that with most is taken."""
SHARED = 64.0
"""The price of a link that another partition uses."""
LOAD = 1024.0
"""The price of one unit of load."""
ASIDE = float(1 << 40)
"""The price of a way down that loads did not choose for the destination (`one_way`)."""
TOO_MANY = float(1 << 44)
"""The price of a further link for a `phy` partition that has its share."""
FORBIDDEN = float(1 << 49)
"""The price of a link that is, or would be, shared with a `phy` partition."""


class PartitionSenders(NamedTuple):
    """The leaf switches from which members send to each destination."""

    offset: U32
    """uint32[rows + 1] into `leaf`."""
    leaf: U32
    row: U32
    """uint32[T]: the row of each terminal."""


class ChannelOwners(NamedTuple):
    """Which partitions use each channel."""

    user: I32
    """int32[C]: an isolation number, `NOBODY`, or `SEVERAL`."""
    held: Bool
    """bool[C]: a `phy` partition uses the channel."""


@kernel
def grow_partition_trees(
    graph: Graph,
    legal: Orientation,
    row: RootDistances,
    senders: PartitionSenders,
    root_of: U32,
    last_port: U8,
    dests: U32,
    isolation: I32,
    policy: U8,
    weight: F64,
    quota: I32,
    share: float,
    one_way: bool,
    owners: ChannelOwners,
    egress: U8,
) -> I32:  # pragma: no cover
    """Fills rows `dests` of `egress` uint8[D, S]. Returns int32[·, 2]: (destination, channel) for
    each destination that had to break a `phy` policy.

    `isolation` int32[T] (-1: in no partition), `policy` uint8[T], `weight` float64[T]; `quota`
    int32[·, S] by isolation number, the last row zeros; `share` is A of Equation 2; with `one_way`
    all sources come down to a destination over the same links.
    """
    switches, channels = egress.shape[1], len(graph.target)
    one = np.uint32(1)
    routes = np.zeros(max(1, channels), np.float64)
    weights = np.zeros(max(1, channels), np.float64)
    marks = np.zeros((quota.shape[0], switches), np.int32)
    has_up = np.zeros((quota.shape[0], switches), np.int32)  # links up held, by `phy` group
    has_down = np.zeros((quota.shape[0], switches), np.int32)
    cost = np.empty(switches, np.float64)
    via = np.empty(switches, np.uint32)
    own = np.zeros(switches, np.uint32)  # from where to come down to each switch
    seen = np.zeros(switches, np.bool_)
    broken = np.empty((len(dests), 2), np.int32)
    breaks = 0
    mean = 0.0
    for d in dests:
        mean += weight[d] / len(dests)
    for d in dests:
        root, tree = root_of[d], egress[d]
        group = isolation[d]
        phy = policy[d] == PHY
        legal_tree(graph, legal, row, root, last_port[d], tree)
        cost[:] = np.inf
        # First the common way down, then the trees. One loop, because a function of so many arrays
        # would take longer to call than to run.
        for stage in range(0 if one_way else 1, 2):
            if stage:
                cost[root] = 0.0
            for i in range(one, row.size[0]):
                v = row.order[i]
                if not stage and not row.falls[v]:
                    continue
                best = np.inf
                for e in range(row.start[i], row.start[i + one]):
                    c = row.edge[e]
                    w = graph.target[c]
                    load = share * routes[c] + (1.0 - share) * weights[c] / mean
                    price = LOAD * load
                    user = owners.user[c]
                    other = user != NOBODY and user != group
                    if other:
                        price += SHARED
                    # Downwards (Algorithm 3) the mark of the upper end decides, upwards
                    # (Algorithm 4) that of the end ahead.
                    price += MARKED / (1.0 + marks[group, w if stage else v])
                    if other and (phy or owners.held[c]):
                        price += FORBIDDEN
                    elif phy and user == NOBODY:
                        up = legal.higher[c]
                        has = has_up[group, v] if up else has_down[group, w]
                        if has >= quota[group, v if up else w]:
                            price += TOO_MANY
                    if not stage:
                        if price < cost[w]:
                            cost[w] = price
                            own[w] = v
                        continue
                    if one_way and row.falls[v] and own[w] != v:
                        price += ASIDE
                    if price + cost[w] < best:
                        best = price + cost[w]
                        via[v] = c
                if stage:
                    cost[v] = best
                    tree[v] = graph.port[via[v]]
        seen[:] = False
        at = senders.row[d]
        forbidden = np.int64(-1)
        for k in range(senders.offset[at], senders.offset[at + one]):
            v = senders.leaf[k]
            while v != root and not seen[v]:
                seen[v] = True
                c = via[v]
                w = graph.target[c]
                user = owners.user[c]
                if user != NOBODY and user != group and (phy or owners.held[c]) and forbidden < 0:
                    forbidden = np.int64(c)
                if phy and user == NOBODY:
                    if legal.higher[c]:
                        has_up[group, v] += 1
                    else:
                        has_down[group, w] += 1
                if user == NOBODY:
                    owners.user[c] = group if group >= 0 else SEVERAL
                elif user != group:
                    owners.user[c] = SEVERAL
                owners.held[c] |= phy
                routes[c] += 1.0
                weights[c] += weight[d]
                marks[group, v] += 1
                marks[group, w] += 1
                v = w
        if forbidden >= 0:
            broken[breaks, 0], broken[breaks, 1] = d, forbidden
            breaks += 1
    return broken[:breaks]
