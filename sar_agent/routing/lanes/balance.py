"""Evens out what lanes carry, without a new dependency in any of them.

Paths fill the first lane before the second, which leaves most of all traffic in one set of buffers.
A path may go to any lane that has all its dependencies already, and any lane may be split in two:
fewer paths close no loop that more did not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.dag import U32
from sar_agent.routing.lanes.order import PRESENT, Net

F64 = NDArray[np.float64]


class Demand(NamedTuple):
    """What goes to each of T terminals. Between hosts only."""

    of: U32
    """uint32[T + 1]: of[t]:of[t + 1] are the jobs of terminal t in `jobs`."""
    jobs: U32
    """uint32[·]"""
    members: U32
    """uint32[J + 1]: switches of the terminals of each job in `switches`."""
    switches: U32
    """uint32[·]"""
    weight: F64
    """float64[J]: what each terminal of a job sends each other one of it."""
    everyone: F64
    """float64[S]: what goes from a switch to any terminal outside of jobs."""


def demand_of(fabric: Fabric, mix: JobMix | None) -> Demand:
    """Jobs' all-to-alls at full speed; beside these, or without them, all pairs of hosts alike."""
    jobs = mix.jobs if mix else ()
    sizes = np.array([len(job.terminals) for job in jobs], np.int64)
    member = np.concatenate([np.zeros(0, np.int64), *(job.terminals for job in jobs)]).astype(int)
    which = np.repeat(np.arange(len(jobs)), sizes)
    order = np.argsort(member, kind="stable")
    share = 1e-3 if len(jobs) else 1.0
    return Demand(
        np.searchsorted(member[order], np.arange(fabric.terminals + 1)).astype(np.uint32),
        which[order].astype(np.uint32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        fabric.terminal_switch[member].astype(np.uint32),
        1 / np.maximum(sizes - 1.0, 1),
        share * fabric.terminals_at / max(1, fabric.terminals),
    )


@njit(cache=True)
def even_out(
    net: Net,
    demand: Demand,
    trees: U8,
    root: U32,
    rows: U32,
    destinations: int,
    sends: Bool,
    depends: U8,
    first: int,
    load: F64,
    level: U8,
) -> None:  # pragma: no cover
    """Moves paths of these rows (hosts' destinations) from lanes with more than their share to the
    least loaded that has their dependencies.

    `depends` uint8[L, C, W] are those of lanes `first` … `first` + L - 1, `load` float64[L] what
    they carry (filled here), `level` uint8[R, S] is changed.
    """
    channel, target, offset = net.channel, net.target, net.offset
    channels, none = np.uint32(len(target)), np.uint8(channel.shape[1] - 1)
    ways = np.empty((channel.shape[0], 2), np.uint32)
    weight = np.empty(channel.shape[0])
    for moving in (False, True):
        share = load.sum() / len(load)
        for row in rows:
            end, d = root[row], np.uint32(row % destinations)
            weight[:] = demand.everyone
            for i in range(demand.of[d], demand.of[d + np.uint32(1)]):
                job = demand.jobs[i]
                for m in range(demand.members[job], demand.members[job + np.uint32(1)]):
                    weight[demand.switches[m]] += demand.weight[job]
            for s in range(len(weight)):
                at = np.int64(level[row, s]) - first
                if not sends[s] or np.uint32(s) == end or at < 0 or at >= len(load):
                    continue
                if not moving:
                    load[at] += weight[s]
                    continue
                if load[at] <= share:
                    continue
                length = 0
                c = channel[s, min(trees[row, s], none)]
                while c < channels and target[c] != end and length < len(ways):
                    v = target[c]  # tables that do not reach are the check's to find
                    after = channel[v, min(trees[row, v], none)]
                    ways[length, 0], ways[length, 1] = c, after - offset[v]
                    length += 1
                    c = after
                best = at
                for lane in np.arange(len(load)):
                    if load[lane] + weight[s] < load[best]:
                        has = c < channels
                        for w in range(length):
                            has &= depends[lane, ways[w, 0], ways[w, 1]] == PRESENT
                        if has:
                            best = lane
                if best != at:
                    load[at] -= weight[s]
                    load[best] += weight[s]
                    level[row, s] = first + best
