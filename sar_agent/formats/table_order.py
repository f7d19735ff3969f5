"""The two orders of forwarding tables: a row is a destination in `Routes`, a switch in files.

Each kernel passes once over the entries; numpy's fancy indexing takes ten times as long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.align import Alignment
from sar_agent.fabric.model import U8
from sar_agent.util.kernels import kernel

Index = NDArray[np.int64]
_STRIP = 64
"""Source rows at a time: of 13,000 entries each, they stay in the second-level cache."""


def reordered(table: U8, rows: Index, columns: Index, missing: int) -> U8:
    """uint8[R, C]: entry [i, j] is `table[columns[j], rows[i]]`, or `missing` where `rows` (int64
    [R]) or `columns` (int64[C]) is -1."""
    made = _reorder(table, np.maximum(rows, 0), np.maximum(columns, 0))
    made[rows < 0] = missing
    made[:, columns < 0] = missing
    return made


def by_destination(tables: U8, fabric: Fabric, at: Alignment, missing: int) -> U8:
    """uint8[O, D, S] on the indices of `fabric` (`ours` in `at`), from uint8[O, S, D]; `missing`
    where the tables do not have the destination or the switch."""
    destinations = _places(at.ours_d, at.theirs_d, fabric.destinations)
    switches = _places(at.ours_s, at.theirs_s, fabric.switches)
    return stacked([reordered(table, destinations, switches, missing) for table in tables])


def stacked(tables: list[U8]) -> U8:
    """One array of all; of a single one it is a view, since tables are large to copy."""
    return tables[0][None] if len(tables) == 1 else np.stack(tables)


def _places(ours: Index, theirs: Index, size: int) -> Index:
    """int64[size]: the index of `theirs` for each of `ours`, -1 for others."""
    places = np.full(size, -1, np.int64)
    places[ours] = theirs
    return places


@kernel
def _reorder(table: U8, rows: Index, columns: Index) -> U8:  # pragma: no cover
    made = np.empty((len(rows), len(columns)), np.uint8)
    for first in range(0, len(columns), _STRIP):
        last = min(first + _STRIP, len(columns))
        for i in range(len(rows)):
            at = np.uint64(rows[i])
            for j in range(first, last):
                made[i, j] = table[np.uint64(columns[j]), at]
    return made


@kernel
def faults(table: U8, highest: U8, least_word: int) -> tuple[int, int]:  # pragma: no cover
    """Of uint8[S, D]: how many entries are neither a port of their switch, up to `highest` (uint8
    [S]), nor `least_word` or above; and how many are 0."""
    wrong, zeros = 0, 0
    for s in range(len(table)):
        row, most = table[s], highest[s]
        for port in row:
            wrong += (port > most) & (port < least_word)
            zeros += port == 0
    return wrong, zeros
