"""Messages of rings that meet on a link: which, where, and one sentence on all of them.

In a ring all-reduce (NCCL; large all-reduces of MPI) every host of a job sends to the next one, all
at the same time. Two messages on one direction of a cable each get half of it. Users call that a
routing collision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.collectives import RING, messages_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
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
    part: NDArray[np.int64]
    """int64[M] into the jobs of the mix."""
    channel: NDArray[np.int64]
    """int64[hops, M]: the channels of each, then -1."""

    def on(self, channel: int) -> list[int]:
        """The messages over a channel."""
        return np.flatnonzero((self.channel == channel).any(axis=0)).tolist()


def ring_messages(fabric: Fabric, mix: JobMix, routes: Routes) -> RingMessages:
    """The messages of all rings on the tables of LID offset 0, up to where these lead."""
    found = messages_of(fabric, mix, RING)
    sizes = np.diff(found.phase)
    phase = np.repeat(np.arange(len(sizes)), sizes)
    part = np.searchsorted(found.job, phase, side="right") - 1
    root = fabric.terminal_switch[found.destination]
    at = fabric.terminal_switch[found.source].astype(np.int64)
    cross = at != root
    source, destination, part = found.source[cross], found.destination[cross], part[cross]
    at, root = at[cross], root[cross]
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
    channel = np.array(rows, np.int64).reshape(len(rows), len(source))
    return RingMessages(source, destination, part, channel)


def meeting_of(rings: RingMessages, mix: JobMix, parts: tuple[int, ...]) -> tuple[int, list[int]]:
    """The channel on which messages of these parts of a job meet most others, and all messages
    there, theirs first; -1 where they meet none."""
    mine = np.isin(rings.part, parts)
    used = rings.channel[:, mine]
    if not (used >= 0).any():
        return -1, []
    count = np.bincount(rings.channel[rings.channel >= 0])
    channels = np.unique(used[used >= 0])
    worst = int(channels[np.argmax(count[channels])])
    if count[worst] < 2:
        return -1, []
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
    each = before.contention[RING]
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
    left = int((after.contention[RING] > MEETS).sum())
    return f"{text} With routes for these jobs: {left or 'none'}."
