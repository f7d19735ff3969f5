"""Placement that isolates jobs up to a size: between Jigsaw and any free node.

Jobs of at most `insist` nodes wait for cables of their own, by the rules of
`isolating_placement.py`. A larger job takes a place with cables of its own where there is one, and
else the first free nodes; its messages then cross cables that belong to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sar_agent.fabric.model import I32
from sar_lab.research.peers.isolating_placement import LeafShare, LeafSpace, hosts_of


class PartialPlace(NamedTuple):
    """The place of a job."""

    shares: tuple[LeafShare, ...]
    isolated: bool
    """Whether it has cables of its own; a job on one leaf needs none."""

    @property
    def hosts(self) -> I32:
        """int32[N], ascending."""
        return hosts_of(self.shares)


@dataclass
class PartialSpace:
    """`space` without cables for jobs above `insist` nodes that do not find any."""

    space: LeafSpace
    insist: int

    def copy(self) -> PartialSpace:
        """The same state, to try something."""
        return PartialSpace(self.space.copy(), self.insist)

    def place(self, size: int) -> PartialPlace | None:
        """Takes nodes, and cables where the job is isolated; None where there is no place."""
        shares = self.space.place(size)
        if shares is not None:
            return PartialPlace(shares, True)
        free = self.space.free
        if size <= self.insist or size > sum(map(len, free)):
            return None
        parts, left = [], size
        for leaf, hosts in enumerate(free):
            if hosts[:left]:
                parts.append(LeafShare(leaf, tuple(hosts[:left]), ()))
                free[leaf] = hosts[left:]
                left -= len(parts[-1].nodes)
        return PartialPlace(tuple(parts), False)

    def release(self, shares: PartialPlace) -> None:
        """Gives back what `place` took."""
        self.space.release(shares.shares)
