"""What *one message at a time* costs: the contention of jobs over the phases of a shift.

Load is about all messages at once. Most programs send one message a rank after the other: a
pairwise all-to-all, a ring, a halo exchange. Tables of the same load may serve these well or badly.
In phase k of a shift (1 … N - 1) rank i of a job's N ranks sends to rank i + k, modulo N, at the
speed of the job's slowest port. The phase lasts as long as its slowest message.

**Definition.** At each of some moments, every job is at one of its phases. On a channel, a job
meets its own messages of that phase, and of each other job the mean over the messages of its phase
and of its next one, times its weight: while the slowest message lasts, other jobs go on. The
contention of the job's phase is the largest such sum, as a share of what the channel can carry,
over the channels that its messages use; at least 1. The *phase contention* of the job is the mean
over the moments. 1 is the speed of a network without contention, 2 takes twice as long. Hosts' own
cables are not counted, as for loads. A ring is phase 1 alone.

**Moments.** All jobs go on at the same pace from first to last phase. If the largest job has at
most `PHASES` phases, each has a moment; otherwise there are `PHASES` moments, spread evenly and
shifted by multiples of the golden section, so that no period of the tables (a leaf's hosts) hides
between them.

**Agreement.** For a lone job whose phases all count, it is what the fluid simulator's `shift`
takes. The mean over jobs, for 77 tables (26 mixes on 12 fabrics: trees, tori, Dragonfly, HyperX and
three real ones), is .97 to 1.27 of the simulated time, 1.06 in the median; the slowest job's median
is 1.01. Of two tables for one mix, the ratio is within 5 % in nine of ten pairs, 15 % off at worst.
Where the simulator sees more than 1 % between them, it prefers the same one in 57 of 63. Tried in
its place: own messages alone (correlation .47 instead of .98); own and the mean load of other jobs
(the wrong order in 18 of 47); all messages of the moment, without the next phase (17 % too much).

**Cost.** Two walks for each terminal and moment: 6 ms with 1,728 hosts, 70 ms with 11,664 in jobs
of 2 to 64 hosts, 200 ms with one job on all of these.
"""

from __future__ import annotations

import numpy as np

from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.next_hops import NextHops, next_hops_of
from sar_agent.util.kernels import kernel

PHASES = 32
AT_ONCE = 32
"""Moments whose paths are in memory together: 1 MB for each 1,000 terminals on three levels."""
GOLDEN = 0.6180339887498949
"""The fractional part of its multiples fills an interval more evenly than that of any other."""


def phase_contention(fabric: Fabric, mix: JobMix, egress: U8, phases: int = PHASES) -> F64:
    """float64[J]: the phase contention of each job, at least 1, with these tables of one LID
    offset, uint8[destination, switch]. `phases`: the most moments; 0 counts all phases of the
    largest job. Where tables lead nowhere or in a circle, the channels up to there count."""
    result = np.zeros(len(mix.jobs), np.float64)
    if not mix.jobs:
        return result
    size = np.diff(mix.offset)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    speed = port_demand(fabric, mix) / weight
    at = moments(int(size.max()) - 1, phases)
    room = 4  # channels of a message, on average
    while not _add_contention(
        next_hops_of(fabric),
        egress,
        fabric.terminal_switch.astype(np.uint32),
        ranks_of(fabric, mix).astype(np.uint32),
        mix.offset.astype(np.uint32),
        speed,
        weight * speed / 2,
        fabric.channel_rate.astype(np.float64),
        at,
        np.empty(2 * AT_ONCE * room * len(mix.terminal) + fabric.switches, np.uint32),
        np.zeros((len(size), AT_ONCE, 2, 2), np.uint32),
        np.zeros((fabric.channels, 2)),
        result,
    ):
        room *= 2
        result[:] = 0.0
    return result / len(at)


def moments(most: int, phases: int = PHASES) -> F64:
    """float64[·], ascending, in [0, 1): the moments for jobs of at most `most` phases."""
    if not 0 < phases < most:
        return (np.arange(most) + 0.5) / most
    at = np.arange(phases)
    return (at + at * GOLDEN % 1) / phases


@kernel
def _add_contention(
    ways: NextHops,
    egress: U8,
    leaf: U32,
    rank: U32,
    offset: U32,
    speed: F64,
    half: F64,
    capacity: F64,
    moments: F64,
    path: U32,
    part: U32,
    carried: F64,
    result: F64,
) -> bool:  # pragma: no cover
    """Adds the contention at all moments to `result`; False if `path` is too short.

    First all walks of a job, so that its rows of the tables stay in the cache, then all jobs at a
    moment, so that the channels do. A phase is walked once, for all of its moments: small jobs have
    few. `path[part[j, m, p, 0]:part[j, m, p, 1]]` are the channels of job j at moment m, p = 0 in
    its phase and p = 1 in its next one. `half` is a message's speed times the weight, halved;
    `carried` is float64[C, 2], zeros: of all jobs, and what one job's own messages add to it.
    """
    switches = np.int64(len(egress[0]))
    for first in range(0, len(moments), AT_ONCE):
        some = min(AT_ONCE, len(moments) - first)
        end = 0
        for j in range(len(speed)):
            begin = offset[j]
            n = offset[j + 1] - begin
            walked = np.full((n, 2), -1, np.int64)
            for m in range(some):
                for p in range(2):
                    k = np.uint32(moments[first + m] * (n - 1) + p) % (n - np.uint32(1))
                    if walked[k, 0] < 0:
                        walked[k, 0] = end
                        for i in range(n):
                            v = leaf[rank[begin + np.uint32(i)]]
                            d = rank[begin + (np.uint32(i) + k + np.uint32(1)) % n]
                            last = end + switches
                            if last > len(path):
                                return False
                            while v != ways.root[d] and end < last:
                                c = ways.channel_by_port[v, egress[d, v]]
                                if c >= len(capacity):
                                    break
                                path[end] = c
                                end += 1
                                v = ways.target[c]
                        walked[k, 1] = end
                    part[j, m, p, 0], part[j, m, p, 1] = walked[k]
        for m in range(some):
            for j in range(len(speed)):
                for p in range(2):
                    for e in range(part[j, m, p, 0], part[j, m, p, 1]):
                        carried[path[e], 0] += half[j]
            for j in range(len(speed)):
                # Of this job, the messages of its phase count alone, and at full speed.
                now, past = part[j, m, 0]
                then, end = part[j, m, 1]
                for e in range(now, past):
                    carried[path[e], 1] += speed[j] - half[j]
                for e in range(then, end):
                    carried[path[e], 1] -= half[j]
                worst = 1.0
                for e in range(now, past):
                    c = path[e]
                    worst = max(worst, (carried[c, 0] + carried[c, 1]) / capacity[c])
                result[j] += worst
                for p in range(2):
                    for e in range(part[j, m, p, 0], part[j, m, p, 1]):
                        carried[path[e], 1] = 0.0
            for c in range(len(capacity)):
                carried[c, 0] = 0.0
    return True
