"""Balances traffic over lanes, without a new dependency in any of them.

Paths fill the first lane before the second, which leaves most traffic in one set of buffers. A path
may move to any lane that has all its dependencies already, and any lane may be split in two: a part
of its paths closes no cycle that all of them did not. O(D S · hops), twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U16, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.two_way_search import LaneOrder
from sar_agent.util.kernels import kernel


class TerminalDemand(NamedTuple):
    """Traffic between hosts, by destination terminal."""

    of: U32
    """uint32[T + 1]: of[t]:of[t + 1] are the jobs of terminal t in `jobs`."""
    jobs: U32
    """uint32[·]"""
    members: U32
    """uint32[J + 1]: switches of the terminals of each job in `switches`."""
    switches: U32
    """uint32[·]"""
    weight: F64
    """float64[J]: what each terminal of a job sends to each other terminal of it."""
    everyone: F64
    """float64[S]: what each switch sends to any terminal, jobs or not."""


def demand_of(fabric: Fabric, mix: JobMix | None) -> TerminalDemand:
    """All-to-all inside each job at full speed, and a little between all pairs of hosts; without
    jobs all pairs alike."""
    mix = mix or JobMix(())
    of, jobs = mix.by_terminal(fabric.terminals)
    share = 1e-3 if mix.jobs else 1.0
    return TerminalDemand(
        of.astype(np.uint32),
        jobs.astype(np.uint32),
        mix.offset.astype(np.uint32),
        fabric.terminal_switch[mix.terminal].astype(np.uint32),
        1 / np.maximum(np.diff(mix.offset) - 1.0, 1),
        share * fabric.terminals_at / max(1, fabric.terminals),
    )


def shared_by(lanes: list[LaneOrder]) -> U16:
    """uint16[C, W]: bit l is set where lane l has the dependency."""
    bits = np.zeros(lanes[0].depends.shape, np.uint16)
    for number, lane in enumerate(lanes):
        bits |= (lane.depends == PRESENT).astype(np.uint16) << np.uint16(number)
    return bits


@kernel
def even_out(
    net: ChannelGraph,
    demand: TerminalDemand,
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
    the least loaded lane that has their dependencies.

    `load` float64[L] receives what each lane carries; `shared` uint16[C, W]:
    which of them have a dependency; `level` uint8[R, S] is changed.
    """
    channel, target, offset = net.channel, net.target, net.offset
    channels, none = np.uint32(len(target)), np.uint8(channel.shape[1] - 1)
    weight, count, one = np.empty(channel.shape[0]), np.uint32(len(load)), np.uint32(1)
    every = (one << count) - one
    of, jobs, members = demand.of, demand.jobs, demand.members
    switches, by_job, everyone = demand.switches, demand.weight, demand.everyone
    for moving in (False, True):
        share = load.sum() / count
        for row in rows:
            end, d = root[row], np.uint32(row % destinations)
            weight[:] = everyone
            for i in range(of[d], of[d + one]):
                for m in range(members[jobs[i]], members[jobs[i] + one]):
                    weight[switches[m]] += by_job[jobs[i]]
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
