"""The kernel that counts many runs of a schedule, each with other hosts for the ranks.

`dep_max_delay` follows ORCS exactly. The delay of a pair is the largest number of messages on a
link of its route, counting all pairs of the level. A message waits for another one if its sender
was a receiver in the previous level; where a rank occurs several times in a level, the first
message that it sends depends on the first one that it received. The result is the longest chain of
delays; a root that sends in each level of a tree starts a new chain each time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import U32
from sar_agent.util.kernels import kernel
from sar_lab.research.orcs.network import NONE

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Counts(NamedTuple):
    """The counts of R runs."""

    delay: I64
    """int64[R]: dep_max_delay."""
    congestion: I64
    """int64[R]: the worst congestion of each level, added up."""
    bandwidth: F64
    """float64[R]: 1 / congestion, mean over all pairs; NaN without pairs."""
    pairs: I64
    """int64[W]: pairs of all runs whose worst link carries w messages; no link carries W."""


@kernel
def count_runs(
    hop: U32,
    head: U32,
    enter: U32,
    place: U32,
    background: U32,
    source: U32,
    destination: U32,
    level: U32,
    drawn: U32,
    first: int,
    hosts: U32,
    chance: F64,
    all_pairs: bool,
    counts: Counts,
) -> int:  # pragma: no cover
    """Fills `counts`. Returns -1, or sender * H + receiver (hosts) of a route that does not reach
    its destination.

    `hosts` uint32[R, n]: the host of each rank; `chance` float64[R, ·] in [0, 1): random numbers
    for drawn receivers; `background` uint32[E]: the load of each link in each level. Without
    `all_pairs` only the delay is counted.
    """
    nodes, links, ranks = len(hop), len(head), hosts.shape[1]
    load = background.copy()
    touched = np.empty(links, np.uint32)
    receiver = destination.copy()
    left = np.empty(ranks, np.uint32)
    ended, ends = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    received, sent = np.zeros(ranks, np.uint32), np.zeros(ranks, np.uint32)
    stamp = np.uint32(1)  # of the level; a mark one lower is the level before it
    for run in range(len(hosts)):
        who = hosts[run]
        luck = 0
        for r in range(len(drawn)):
            start, size, base = drawn[r]
            _draw(receiver[start : start + size], base, chance[run, luck:], left)
            luck += size
        delay = congestion = messages = 0
        bandwidth = 0.0
        stamp += np.uint32(1)
        for step in range(len(level) - 1):
            count = 0
            for p in range(level[step], level[step + 1]):
                s, d = who[source[p]], who[receiver[p]]
                v, goal = place[s], place[d]
                e = enter[s]
                hops = 0
                while v != goal:
                    if hops or e == NONE:
                        if v >= nodes or hops > nodes:
                            return int(s) * len(place) + int(d)
                        e = hop[v, d]
                        if e == NONE:
                            return int(s) * len(place) + int(d)
                    if load[e] == background[e]:
                        touched[count] = e
                        count += 1
                    load[e] += np.uint32(1)
                    v = head[e]
                    hops += 1
            worst = 0
            for p in range(level[step], level[step + 1]):
                a, b = source[p], receiver[p]
                own = a < first and b < first
                if not (own or all_pairs):
                    continue
                s, d = who[a], who[b]
                v, goal = place[s], place[d]
                e = enter[s]
                most = 0
                moved = False
                while v != goal:
                    if moved or e == NONE:
                        e = hop[v, d]
                    most = max(most, int(load[e]))
                    v = head[e]
                    moved = True
                if own:
                    end = most
                    if sent[a] != stamp:
                        sent[a] = stamp
                        if received[a] == stamp - np.uint32(1):
                            end += int(ended[a])
                    # `ended` of this level must not hide that of the one before it
                    if ends[b] == 0:
                        ends[b] = end
                    delay = max(delay, end)
                if all_pairs:
                    worst = max(worst, most)
                    counts.pairs[most] += 1
                    bandwidth += 1 / most
                    messages += 1
            congestion += worst
            for p in range(level[step], level[step + 1]):
                b = receiver[p]
                if ends[b]:
                    ended[b], received[b], ends[b] = ends[b], stamp, 0
            stamp += np.uint32(1)
            for e in touched[:count]:
                load[e] = background[e]
        counts.delay[run] = delay
        counts.congestion[run] = congestion
        counts.bandwidth[run] = bandwidth / messages if messages else np.nan
    return -1


@kernel
def _draw(receiver: U32, base: np.uint32, chance: F64, left: U32) -> None:  # pragma: no cover
    """Sender i gets one of the receivers that are left, not itself; if the last one is left with
    itself, it swaps with another. `left` is scratch, uint32[≥ n]."""
    size = len(receiver)
    left[:size] = np.arange(size)
    for i in range(size):
        rest = size - i
        if rest == 1 and left[0] == i:
            other = np.uint32(chance[i] * i)
            receiver[i] = receiver[other]
            receiver[other] = base + np.uint32(i)
            break
        own = rest
        for j in range(rest):
            if left[j] == i:
                own = j
        choices = rest - 1 if own < rest else rest
        pick = int(chance[i] * choices)
        if pick >= own:
            pick += 1
        receiver[i] = base + left[pick]
        left[pick] = left[rest - 1]
