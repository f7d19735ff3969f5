"""Messages of rings that meet on a link: which, where, and one sentence on all of them.

In a ring all-reduce (NCCL; large all-reduces of MPI) every host of a job sends to the next one, all
at the same time. Two messages on one direction of a cable each get half of it. Users call that a
routing collision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import RING, Messages, messages_of
from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, I64
from sar_agent.jobs import JobMix
from sar_agent.quality.measures import MEETS, Measures
from sar_agent.routing.graph.next_hops import next_hops_of
from sar_agent.routing.routes import Routes


class RingMessages(NamedTuple):
    """M messages that leave their leaf switch; jobs that declare traffic send that."""

    source: I32
    """int32[M]: terminals."""
    destination: I32
    """int32[M]"""
    part: I64
    """int64[M] into the jobs of the mix."""
    channel: I64
    """int64[hops, M]: the channels of each, then -1."""
    time: F64
    """float64[hops, M]: how many times as long it takes there as alone; 0 where there is none."""

    def on(self, channel: int) -> list[int]:
        """The messages over a channel where one of them takes longer; else none."""
        here = self.channel == channel
        if not (self.time[here] > MEETS).any():
            return []
        return np.flatnonzero(here.any(axis=0)).tolist()


def ring_messages(fabric: Fabric, mix: JobMix, routes: Routes) -> RingMessages:
    """The messages of all rings on the tables of LID offset 0, up to where these lead."""
    found = messages_of(fabric, mix, RING)
    sizes = np.diff(found.phase)
    phase = np.repeat(np.arange(len(sizes)), sizes)
    root = fabric.terminal_switch[found.destination]
    at = fabric.terminal_switch[found.source].astype(np.int64)
    cross = np.flatnonzero(at != root)
    destination, at, root = found.destination[cross], at[cross], root[cross]
    ways, tables = next_hops_of(fabric), routes.egress[0]
    rows = []
    for _ in range(fabric.switches):
        going = (at != root) & (at >= 0)
        if not going.any():
            break
        row = np.full(len(at), -1, np.int64)
        row[going] = ways.channel_by_port[at[going], tables[destination[going], at[going]]]
        row[row >= fabric.channels] = -1
        rows.append(row)
        at = np.where(going, np.where(row < 0, -1, fabric.channel_target[row]), at)
    channel = np.array(rows, np.int64).reshape(len(rows), len(cross))
    part = np.searchsorted(found.job, phase[cross], side="right") - 1
    time = _times(fabric, mix, found, phase[cross], found.weight[cross], part, channel)
    return RingMessages(found.source[cross], destination, part, channel, time)


def _times(
    fabric: Fabric, mix: JobMix, found: Messages, phase: I64, share: F64, part: I64, channel: I64
) -> F64:
    """float64[hops, M]. A message meets those of its phase, and of each other job the mean over its
    phases, times its weight."""
    time = np.zeros(channel.shape)
    if not mix.jobs:
        return time
    hop, message = np.nonzero(channel >= 0)
    c, j = channel[hop, message], part[message]
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    sent = (port_demand(fabric, mix) / weight)[j] * share[message]
    others = sent * weight[j] / np.diff(found.job)[j]
    own = _sums(phase[message] * fabric.channels + c, sent)
    total = np.bincount(c, others, fabric.channels)[c] - _sums(j * fabric.channels + c, others)
    time[hop, message] = (own + total) / fabric.channel_rate[c]
    return time


def _sums(group: I64, value: F64) -> F64:
    """float64[E]: for each of E entries, the sum over those of its group."""
    _, place = np.unique(group, return_inverse=True)
    return np.bincount(place, value).astype(np.float64)[place]


def meeting_of(rings: RingMessages, parts: tuple[int, ...]) -> tuple[int, list[int]]:
    """The channel on which messages of these parts of a job take longest, and all messages there,
    theirs first; -1 where they meet none."""
    mine = np.isin(rings.part, parts)
    time = np.where(mine, rings.time, 0.0)
    if not (time > MEETS).any():
        return -1, []
    worst = int(rings.channel.ravel()[time.argmax()])
    return worst, sorted(rings.on(worst), key=lambda m: (not mine[m], m))


def message_words(rings: RingMessages, fabric: Fabric, mix: JobMix, message: int) -> str:
    """`n003 → n004 (job 4711)`."""
    hosts = fabric.terminal_host
    ends = (int(rings.source[message]), int(rings.destination[message]))
    job = mix.jobs[int(rings.part[message])].id
    return f"{hosts[ends[0]]} → {hosts[ends[1]]} (job {job})"


def ring_sentence(before: Measures, after: Measures | None = None) -> str:
    """What rings of all jobs take on these tables, and on those for the jobs, where known. Empty
    without multi-switch jobs."""
    each = _each(before)
    if not len(each):
        return ""
    slow = each[each > MEETS]
    jobs = f"{len(each)} job{'s' * (len(each) != 1)}"
    if not len(slow):
        return f"Ring all-reduce: no messages of the {jobs} meet on a link."
    worst = before.jobs_detail[int(each.argmax())].job
    text = (
        f"Ring all-reduce: messages of {len(slow)} of {jobs} meet on a link, so that "
        f"{'it takes' if len(slow) == 1 else 'they take'} {slow.mean():.1f} times as long "
        f"(job {worst}: {each.max():.1f})."
    )
    if after is None:
        return text
    left = int((_each(after) > MEETS).sum())
    return f"{text} With routes for these jobs: {left or 'none'}."


def _each(measures: Measures) -> F64:
    """float64[·]: the contention of each job's ring alone, without that of other collectives."""
    traffic = measures.traffic
    return traffic.mix.largest(traffic.contention(RING))
