"""The links that flows cross, and the flows that run over each.

There are L = C + 2 T links: the channels, then what each terminal sends into its leaf switch, then
what it receives from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import Bool
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
    limit: U32
    """uint32[F]: the full link that keeps a running flow from being faster."""
    growing: U32
    """uint32[L], scratch, all 0."""
    left: F64
    """float64[L], scratch."""
    moves: Bool
    """bool[F], scratch, all False."""


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
        np.zeros(len(path) - 1, np.uint32),
        np.zeros(len(capacity), np.uint32),
        np.zeros(len(capacity), np.float64),
        np.zeros(len(path) - 1, np.bool_),
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
