"""Recognises HyperX networks from live cables alone, and finds each switch's coordinates.

In a HyperX two neighbours of a switch are neighbours of each other just if they are in one row with
it. So the neighbours of any switch fall into one clique for each dimension. A switch has the
coordinate of that clique's switch to which it is nearer than to the first switch: distances are the
numbers of coordinates that differ. Names and port numbers are not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric.levels import levels_above
from sar_agent.fabric.model import I32, Fabric

_ELSE = "take dfsssp, updn or sar-plus"


@dataclass(frozen=True, eq=False)
class HyperXView:
    """The grid of a HyperX of L dimensions."""

    dims: tuple[int, ...]
    """Switches per dimension, dimensions in the order of the lowest GUIDs beside the first
    switch."""
    coordinate: I32
    """int32[S, L]; the switch with the lowest GUID is the origin."""
    switch: I32
    """int32[prod(dims)]: the switch at each place, the last coordinate fastest."""


def recognise_hyperx(fabric: Fabric) -> HyperXView:
    """The coordinates of all switches. Raises `Unserved` with the first switch that does not
    fit, also where all cables of a pair are dead. O(S^2 L)."""
    count = fabric.switches
    live = fabric.channel_up
    near = np.zeros((count, count), np.bool_)
    near[fabric.channel_source[live], fabric.channel_target[live]] = True
    rank = np.argsort(fabric.switch_guid)
    first = int(rank[0])
    rows: list[list[int]] = []
    for v in rank[near[first, rank]].tolist():
        for row in rows:
            if near[row[0], v]:
                row.append(v)
                break
        else:
            rows.append([v])
    dims = tuple(1 + len(row) for row in rows)
    if prod(dims) != count:
        raise _unlike(
            fabric,
            first,
            f"has neighbours in rows of {_list(dims)}, and there are {count} switches",
        )
    distance = levels_above(fabric, np.array([first]))
    coordinate = np.zeros((count, len(rows)), np.int32)
    for axis, row in enumerate(rows):
        for place, v in enumerate(row, start=1):
            nearer = levels_above(fabric, np.array([v])) + 1 == distance
            coordinate[nearer, axis] = place
    index = np.zeros(count, np.int64)
    for axis, side in enumerate(dims):
        index = index * side + coordinate[:, axis]
    for v in range(count):
        differ = (coordinate != coordinate[v]).sum(axis=1)
        if ((differ == 1) != near[v]).any() or np.count_nonzero(differ == 0) != 1:
            raise _unlike(fabric, v, "is not cabled to all others of its rows, and to no others")
    switch = np.empty(count, np.int32)
    switch[index] = np.arange(count)
    return HyperXView(dims, coordinate, switch)


def _list(dims: tuple[int, ...]) -> str:
    return " x ".join(map(str, dims)) or "no dimension"


def _unlike(fabric: Fabric, switch: int, what: str) -> Unserved:
    return Unserved(
        f'{fabric.name} is not a HyperX: switch "{fabric.switch_name[switch]}" {what}; {_ELSE}'
    )
