"""What a collective costs each job on finished tables: the contention of its phases.

Load is about all messages at once. Most programs send one message a rank after the other: rings,
recursive doubling, halos, pairwise exchanges. Tables of the same load may serve these well or
badly. All jobs run the same collective here, but for those that declare what they send.

**Definition.** At each of some moments, every job is at one of its phases. On a channel, a job
meets its own messages of that phase, at the speed of its slowest port, and of each other job the
mean over the messages of its phase and of its next one, times its weight: while the slowest message
lasts, other jobs go on. The contention of the job's phase is the largest such sum, as a share of
what the channel can carry, over the channels that its messages use; at least 1. The contention of
the job is the mean over the moments: 1 is the speed of a network without contention, 2 takes twice
as long. Hosts' own cables are not counted, as for loads. All messages at once are a load, the
largest on the job's channels, at least 1.

**Moments.** All jobs go on at the same pace from first to last phase. If the largest number of
phases of a job is at most `PHASES`, each has a moment. Otherwise, in pairwise exchanges alone,
there are `PHASES` moments, spread evenly and shifted by multiples of the golden section, so that no
period of the tables (a leaf's hosts) hides between them.

**Agreement** of the pairwise exchange: for a lone job whose phases all count, it is what the fluid
simulator's `shift` takes. The mean over jobs, for 77 tables (26 mixes on 12 fabrics), is .97 to
1.27 of the simulated time, 1.06 in the median. Tried in its place: own messages alone (correlation
.47 instead of .98); own and the mean load of other jobs (the wrong order in 18 of 47); all messages
of the moment, without the next phase (17 % too much).

**Bounds** are in `contention_bounds.py`.

**Cost.** Two walks for each message of a moment's phases; a ring has as many as there are hosts, a
pairwise exchange up to 64 times as many. With 11,664 hosts (`mix:1`) the eight together take about
four times as long as all loads (`traffic_of`), the pairwise exchange half of that; listing the
messages takes as long once for each mix, and 4 MB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, PAIRWISE, PHASES, job_phases, moments
from sar_agent.demand.declared import declared_phases
from sar_agent.demand.patterns import RankPhase
from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.routing.graph.next_hops import NextHops, next_hops_of
from sar_agent.util.kernels import kernel


class MomentMessages(NamedTuple):
    """The messages of the phases that some moment looks at: M messages in F phases; J jobs."""

    source: U32
    """uint32[M]: terminals."""
    destination: U32
    """uint32[M]"""
    first: U32
    """uint32[F + 1] into the messages."""
    weight: F64
    """float64[F]: share of its rate at which a terminal sends each message of the phase."""
    at: U32
    """uint32[moments, J, 2]: the phase of a job, and its next one; F for a job without any."""


@lru_cache(maxsize=32)
def moment_messages(
    fabric: Fabric, jobs: tuple[Job, ...], collective: str, phases: int = PHASES
) -> MomentMessages:
    """The messages of these jobs, all of which run `collective`; kept for the next tables."""
    mix = JobMix(jobs)
    ranks = ranks_of(fabric, mix).astype(np.uint32)
    found = [_Phases(job, collective) for job in jobs]
    when = moments(max((each.count for each in found), default=0), phases)
    source: list[U32] = []
    destination: list[U32] = []
    weight: list[float] = []
    at = np.zeros((len(when), len(jobs), 2), np.int64)
    for j, each in enumerate(found):
        if not each.count:
            at[:, j] = -1
            continue
        now = (when * each.count).astype(np.int64) % each.count
        both = np.stack([now, (now + 1) % each.count], axis=1)
        used, place = np.unique(both, return_inverse=True)
        at[:, j] = len(weight) + place.reshape(both.shape)
        mine = ranks[mix.offset[j] : mix.offset[j + 1]]
        for k in used.tolist():
            phase = each[k]
            source.append(mine[phase.source])
            destination.append(mine[phase.destination])
            weight.append(phase.weight)
    at[at < 0] = len(weight)
    none = np.empty(0, np.uint32)
    return MomentMessages(
        np.concatenate([none, *source]),
        np.concatenate([none, *destination]),
        np.cumsum([0, *map(len, source)]).astype(np.uint32),
        np.array(weight, np.float64),
        at.astype(np.uint32),
    )


class _Phases:
    """The phases of a job by number; those of a pairwise exchange are made when asked for."""

    def __init__(self, job: Job, collective: str) -> None:
        self.size = len(job.terminals)
        self.listed = declared_phases(job)
        if self.listed is None and collective != PAIRWISE:
            self.listed = job_phases(job, collective)
        self.count = self.size - 1 if self.listed is None else len(self.listed)

    def __getitem__(self, k: int) -> RankPhase:
        if self.listed is not None:
            return self.listed[k]
        rank = np.arange(self.size, dtype=np.int32)
        return RankPhase(f"+{k + 1}", rank, np.roll(rank, -k - 1))


def collective_contention(
    fabric: Fabric, mix: JobMix, egress: U8, collective: str = PAIRWISE, phases: int = PHASES
) -> F64:
    """float64[J]: the contention of each job in a key of `COLLECTIVES` but for all messages at
    once, at least 1, with these tables of one LID offset, uint8[destination, switch]. `phases`: the
    most moments; 0 counts all phases. Where tables lead nowhere or in a circle, the channels up to
    there count."""
    assert collective != AT_ONCE, "all messages at once are a load"
    result = np.ones(len(mix.jobs), np.float64)
    messages = moment_messages(fabric, mix.jobs, collective, phases)
    if not len(messages.source):
        return result
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    speed = port_demand(fabric, mix) / weight
    room = 4  # channels of a message, on average
    while not _add_contention(
        next_hops_of(fabric),
        egress,
        fabric.terminal_switch.astype(np.uint32),
        messages,
        speed,
        weight * speed / 2,
        fabric.channel_rate.astype(np.float64),
        np.empty(room * len(messages.source) + fabric.switches, np.uint32),
        result,
    ):
        room *= 2
    return result


@kernel
def _add_contention(
    ways: NextHops,
    egress: U8,
    leaf: U32,
    messages: MomentMessages,
    speed: F64,
    half: F64,
    capacity: F64,
    path: U32,
    result: F64,
) -> bool:  # pragma: no cover
    """Sets `result` to the mean over moments; False if `path` is too short.

    `path[begin[f]:begin[f + 1]]` are the channels of the messages of phase f. `half` is a message's
    speed times the job's weight, halved. `carried` is of all jobs, `own` what a job's own messages
    add to it: those of its phase count alone, and at full speed.
    """
    first, weight = messages.first, messages.weight
    begin = np.zeros(len(weight) + 1, np.int64)
    switches, end = np.int64(egress.shape[1]), np.int64(0)
    for f in range(len(weight)):
        for m in range(first[f], first[f + 1]):
            d = messages.destination[m]
            v, last = leaf[messages.source[m]], end + switches
            if last > len(path):
                return False
            while v != ways.root[d] and end < last:
                c = ways.channel_by_port[v, egress[d, v]]
                if c >= len(capacity):
                    break
                path[end] = c
                end += 1
                v = ways.target[c]
        begin[f + 1] = end
    carried = np.zeros(len(capacity))
    own = np.zeros(len(capacity))
    result[:] = 0.0
    count, jobs = messages.at.shape[0], messages.at.shape[1]
    for t in range(count):
        for j in range(jobs):
            for p in range(2):
                f = messages.at[t, j, p]
                if f < len(weight):
                    for e in range(begin[f], begin[f + 1]):
                        carried[path[e]] += half[j] * weight[f]
        for j in range(jobs):
            now, then = messages.at[t, j, 0], messages.at[t, j, 1]
            worst = 1.0
            if now < len(weight):
                for e in range(begin[now], begin[now + 1]):
                    own[path[e]] += (speed[j] - half[j]) * weight[now]
                for e in range(begin[then], begin[then + 1]):
                    own[path[e]] -= half[j] * weight[then]
                for e in range(begin[now], begin[now + 1]):
                    c = path[e]
                    worst = max(worst, (carried[c] + own[c]) / capacity[c])
                for e in range(begin[now], begin[now + 1]):
                    own[path[e]] = 0.0
                for e in range(begin[then], begin[then + 1]):
                    own[path[e]] = 0.0
            result[j] += worst / count
        carried[:] = 0.0
    return True
