"""Which free nodes a job gets: what leaves a machine in pieces once it has run for a while.

`best-fit` is what Slurm's topology/tree does: the smallest subtree that has room, in it the fullest
leaf that still holds the job, else the emptiest leaves first. `first-fit` takes the first free
nodes by number, as schedulers do that know no switches. `pieces` gathers runs of a few free nodes
from anywhere, as on a machine whose nodes are shared and set aside in many ways.
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
"""int32[n]: n of the free nodes, of which there are enough."""


def first_fit(free: Free, nodes: int) -> I32:
    """See above."""
    return np.flatnonzero(free)[:nodes].astype(np.int32)


def pieces(random: Generator, most: int) -> Pick:
    """Runs of at most so many nodes; see above."""

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
