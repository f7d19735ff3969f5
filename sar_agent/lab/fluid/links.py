"""The links that flows cross, and at what rate when they share them max-min fairly.

There are L = C + 2 T links: the channels, then what each terminal sends into its leaf switch, then
what it receives from there. Max-min fair: no flow can get more without another that has no more
than it getting less. That is the model of SimGrid's CM02, and what InfiniBand's round-robin
arbiters come to with many packets and no head-of-line blocking; it knows no buffers and no latency.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.routing.dag import U32

F64 = NDArray[np.float64]


class Links(NamedTuple):
    """What flows there are, and which of them run. A flow crosses no link twice."""

    capacity: F64
    """float64[L], Gbit/s."""
    path: U32
    """uint32[F + 1] into `link`."""
    link: U32
    """uint32[E]: flow f crosses `link[path[f]:path[f + 1]]`."""
    room: U32
    """uint32[L + 1] into `user`."""
    user: U32
    """uint32[E]: the flows that run over link l are `user[room[l]:room[l] + users[l]]`."""
    users: U32
    """uint32[L]"""
    place: U32
    """uint32[E]: where in `user` the running flow stands, parallel to `link`."""
    rate: F64
    """float64[F], Gbit/s, of running flows."""


def links_of(capacity: F64, path: U32, link: U32) -> Links:
    """No flow runs yet."""
    flows = np.bincount(link, minlength=len(capacity))
    room = np.concatenate([[0], np.cumsum(flows)])
    return Links(
        capacity,
        path,
        link,
        room.astype(np.uint32),
        np.zeros_like(link),
        np.zeros(len(capacity), np.uint32),
        np.zeros_like(link),
        np.zeros(len(path) - 1, np.float64),
    )


@njit(cache=True)
def start_flow(links: Links, f: np.uint32) -> None:  # pragma: no cover
    """Flow f runs from now on."""
    for e in range(links.path[f], links.path[f + 1]):
        c = links.link[e]
        links.place[e] = links.room[c] + links.users[c]
        links.user[links.place[e]] = f
        links.users[c] += np.uint32(1)


@njit(cache=True)
def end_flow(links: Links, f: np.uint32) -> None:  # pragma: no cover
    """Flow f runs no more: the last user of each of its links takes its place there."""
    for e in range(links.path[f], links.path[f + 1]):
        c = links.link[e]
        links.users[c] -= np.uint32(1)
        last = links.user[links.room[c] + links.users[c]]
        links.user[links.place[e]] = last
        for other in range(links.path[last], links.path[last + 1]):
            if links.link[other] == c:
                links.place[other] = links.place[e]


@njit(cache=True)
def share(links: Links, running: U32) -> None:  # pragma: no cover
    """Sets the rates of the running flows by progressive filling: all rates grow alike; when a link
    is full, the flows on it stay as they are and the others go on.

    The next link to be full is the one with the least left for each of its growing flows. What a
    link has left for each only rises while others fill up, so keys in the heap are lower bounds,
    put right when they come to the top.
    """
    for f in running:
        links.rate[f] = 0.0
    left = links.capacity.copy()
    growing = links.users.copy()
    heap = [(left[c] / growing[c], np.uint32(c)) for c in range(len(left)) if growing[c]]
    heapq.heapify(heap)
    waiting = len(running)
    while waiting:
        bound, c = heapq.heappop(heap)
        if not growing[c]:
            continue
        rate = left[c] / growing[c]
        if rate > bound:
            heapq.heappush(heap, (rate, c))
            continue
        for i in range(links.room[c], links.room[c] + links.users[c]):
            f = links.user[i]
            if not links.rate[f]:
                links.rate[f] = rate
                waiting -= 1
                for e in range(links.path[f], links.path[f + 1]):
                    left[links.link[e]] -= rate
                    growing[links.link[e]] -= np.uint32(1)
