"""Balances traffic over lanes, without a new dependency in any of them.

Paths fill the first lane before the second, which leaves most traffic in one set of buffers. A path
may move to any lane that has all its dependencies already, and any lane may be split in two: a part
of its paths closes no cycle that all of them did not. O(D S · hops), twice.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, U8, U16, U32, Bool
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.two_way_search import LaneOrder
from sar_agent.routing.weighted_trees import SendingTerminals
from sar_agent.util.kernels import kernel


def shared_by(lanes: list[LaneOrder]) -> U16:
    """uint16[C, W]: bit l is set where lane l has the dependency."""
    bits = np.zeros(lanes[0].depends.shape, np.uint16)
    for number, lane in enumerate(lanes):
        bits |= (lane.depends == PRESENT).astype(np.uint16) << np.uint16(number)
    return bits


@kernel
def even_out(
    net: ChannelGraph,
    sources: SendingTerminals,
    trees: U8,
    root: U32,
    rows: U32,
    destinations: int,
    sends: Bool,
    shared: U16,
    load: F64,
    level: U8,
) -> None:  # pragma: no cover
    """Moves paths of `rows` (destinations that are hosts) from lanes with more than their share to
    the least loaded lane that has their dependencies. Traffic is all-to-all inside each job at full
    speed, and a little between all pairs of hosts; without jobs all pairs alike.

    `load` float64[L] receives what each lane carries; `shared` uint16[C, W]:
    which of them have a dependency; `level` uint8[R, S] is changed.
    """
    channel, target, offset = net.channel, net.target, net.offset
    channels, none = np.uint32(len(target)), np.uint8(channel.shape[1] - 1)
    weight, count, one = np.empty(channel.shape[0]), np.uint32(len(load)), np.uint32(1)
    every = (one << count) - one
    all_pairs = 1e-3 if len(sources.on_job) else 1.0
    everyone = all_pairs * sources.at_switch / max(1, len(sources.terminal_switch))
    for moving in (False, True):
        share = load.sum() / count
        for row in rows:
            end, d = root[row], np.uint32(row % destinations)
            weight[:] = everyone
            for i in range(sources.on_offset[d], sources.on_offset[d + one]):
                job = sources.on_job[i]
                first, last = sources.job_offset[job], sources.job_offset[job + one]
                for k in range(first, last):
                    peer = sources.terminal_switch[sources.job_terminal[k]]
                    weight[peer] += 1.0 / max(1.0, last - first - 1.0)
            for s in range(np.uint32(len(weight))):
                at = np.uint32(level[row, s])
                if not sends[s] or s == end or at >= count:
                    continue
                if not moving:
                    load[at] += weight[s]
                    continue
                if load[at] <= share:
                    continue
                # The check reports paths that do not arrive; here they stay where they are.
                lanes, v, before, hops = every, np.uint32(s), channels, 0
                while v != end and lanes:
                    port = trees[row, v]
                    c = channel[v, port if port < none else none]
                    hops += 1
                    if c >= channels or hops > len(weight):
                        lanes = np.uint32(0)
                        break
                    if before < channels:
                        lanes &= np.uint32(shared[before, c - offset[v]])
                    before, v = c, target[c]
                best = at
                for lane in range(count):
                    if lanes >> lane & one and load[lane] + weight[s] < load[best]:
                        best = np.uint32(lane)
                if best != at:
                    load[at] -= weight[s]
                    load[best] += weight[s]
                    level[row, s] = best
