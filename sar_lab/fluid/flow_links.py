"""The links that flows cross, and the flows that run over each.

There are L = C + 2 T links: the channels, then what each terminal sends into its leaf switch, then
what it receives from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import U32, Bool
from sar_agent.util.kernels import kernel, kernel_part

F64 = NDArray[np.float64]


class FlowLinks(NamedTuple):
    """The links of all flows, and for each link its running flows. A flow crosses no link twice."""

    capacity: F64
    """float64[L], Gbit/s."""
    path: U32
    """uint32[F]: where in `link` the path of each flow begins."""
    stop: U32
    """uint32[F]: flow f crosses `link[path[f]:stop[f]]`; the entries up to the next path are
    room."""
    link: U32
    """uint32[E]"""
    flow: U32
    """uint32[E]: the flow of each entry of `link`."""
    users: U32
    """uint32[L]: the number of running flows on each link. They form a linked list of entries,
    since a flow may change its path while it runs, and the number of flows on a link is not known
    beforehand."""
    first: U32
    """uint32[L]: the first entry of each link's list, or E."""
    next: U32
    """uint32[E]: the next entry in the link's list; E after the last."""
    before: U32
    """uint32[E]: the previous entry in the list; the first entry refers to itself."""
    rate: F64
    """float64[F], Gbit/s, of running flows."""
    limit: U32
    """uint32[F]: the full link that limits the rate of a running flow."""
    growing: U32
    """uint32[L], scratch, all 0."""
    left: F64
    """float64[L], scratch."""
    moves: Bool
    """bool[F], scratch, all False."""


def flow_links_of(capacity: F64, path: U32, stop: U32, link: U32) -> FlowLinks:
    """The state before any flow runs. `path` is uint32[F + 1], with the end of the last room."""
    entries, flows = len(link), len(path) - 1
    return FlowLinks(
        capacity,
        path[:-1].copy(),
        stop,
        link,
        np.repeat(np.arange(flows, dtype=np.uint32), np.diff(path)),
        np.zeros(len(capacity), np.uint32),
        np.full(len(capacity), entries, np.uint32),
        np.zeros(entries, np.uint32),
        np.zeros(entries, np.uint32),
        np.zeros(flows),
        np.zeros(flows, np.uint32),
        np.zeros(len(capacity), np.uint32),
        np.zeros(len(capacity)),
        np.zeros(flows, np.bool_),
    )


@kernel
def start_flow(links: FlowLinks, f: np.uint32) -> None:  # pragma: no cover
    """Adds flow f to the lists of its links."""
    for e in range(links.path[f], links.stop[f]):
        c = links.link[e]
        after = links.first[c]
        if after < len(links.link):
            links.before[after] = e
        links.next[e], links.before[e] = after, e
        links.first[c] = e
        links.users[c] += np.uint32(1)


@kernel_part
def end_flow(links: FlowLinks, f: np.uint32) -> None:  # pragma: no cover
    """Removes flow f from the lists of its links."""
    for e in range(links.path[f], links.stop[f]):
        c = links.link[e]
        before, after = links.before[e], links.next[e]
        if after < len(links.link):
            links.before[after] = after if before == e else before
        if before == e:
            links.first[c] = after
        else:
            links.next[before] = after
        links.users[c] -= np.uint32(1)
