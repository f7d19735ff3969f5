"""Which free nodes a job gets; this decides how fragmented a machine is after a while.

`first_fit` takes the first free nodes by number, as a scheduler does that ignores switches.
`pieces` gathers runs of a few free nodes from anywhere, as on a machine whose nodes are shared and
reserved in many ways.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sar_agent.fabric.model import I32

Free = NDArray[np.bool_]
"""bool[N], by node."""
Pick = Callable[[Free, int], I32]
"""Returns int32[n]: n of the free nodes. The caller ensures that enough nodes are free."""


def first_fit(free: Free, nodes: int) -> I32:
    """The first free nodes by number."""
    return np.flatnonzero(free)[:nodes].astype(np.int32)


def pieces(random: Generator, most: int) -> Pick:
    """Runs of at most `most` consecutive free nodes, at random places."""

    def pick(free: Free, nodes: int) -> I32:
        left = free.copy()
        taken: list[NDArray[np.intp]] = []
        while nodes:
            rest = np.flatnonzero(left)
            at = int(np.searchsorted(rest, random.integers(len(free)))) % len(rest)
            run = rest[at : at + min(nodes, most)]
            left[run] = False
            nodes -= len(run)
            taken.append(run)
        return np.sort(np.concatenate(taken)).astype(np.int32)

    return pick
