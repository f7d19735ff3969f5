"""Nodes that two sources share: an index is of one fabric, file or dump, a GUID is of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]


class Nodes(NamedTuple):
    """GUIDs in the order of the indices; each occurs once."""

    destinations: U64
    """uint64[D]: terminals, then switches."""
    switches: U64
    """uint64[S]."""


class Alignment(NamedTuple):
    """Indices of the destinations and switches that both have, in `ours` and in `theirs`, each in
    ascending order of GUIDs."""

    ours_d: NDArray[np.intp]
    theirs_d: NDArray[np.intp]
    ours_s: NDArray[np.intp]
    theirs_s: NDArray[np.intp]

    def shared(self, ours: U8, theirs: U8) -> tuple[U8, U8]:
        """The entries that both of these tables (uint8[S, D], each on its indices) have, in one
        order."""
        if ours.shape == theirs.shape == (len(self.ours_s), len(self.ours_d)) and self._in_order:
            return ours, theirs
        return (
            ours.take(self.ours_s, 0).take(self.ours_d, 1),
            theirs.take(self.theirs_s, 0).take(self.theirs_d, 1),
        )

    @property
    def _in_order(self) -> bool:
        """Whether both have the shared nodes in one order, the ascending one."""
        return all(bool((np.diff(each) > 0).all()) for each in self)


def align(ours: Nodes, theirs: Nodes) -> Alignment:
    """What two sources share."""
    both = [
        np.intersect1d(a, b, assume_unique=True, return_indices=True)[1:]
        for a, b in zip(ours, theirs, strict=True)
    ]
    return Alignment(*both[0], *both[1])
