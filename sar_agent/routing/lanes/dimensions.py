"""Dimension-ordered routes on a torus: all hops in one dimension first, then those in the next.

Arbitrary shortest paths on tori need many lanes (`torus:8x8x8`: 15 and more), because any turn may
occur. Dimension-ordered ones turn in one order only, so that only the rings are left to break. (W.
J. Dally and C. L. Seitz, IEEE Trans. Computers C-36(5), 1987.) O(D S).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.lanes.grid import Grid
from sar_agent.routing.routes import NO_ROUTE


def dimension_ordered(fabric: Fabric, grid: Grid) -> U8:
    """uint8[T + S, S]: the shorter way round each ring. To the opposite switch of an even ring,
    switches alternate between both ways; parallel cables take turns by destination."""
    ports, cables = _ports(fabric, grid)
    turn = _turns(fabric)
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    by_root = np.argsort(fabric.destination_switch, kind="stable")
    starts = np.searchsorted(
        fabric.destination_switch[by_root], np.arange(fabric.switches + 1)
    ).tolist()
    everyone = np.arange(fabric.switches)
    for root in range(fabric.switches):
        step = _steps(grid, root)
        for d in by_root[starts[root] : starts[root + 1]]:
            egress[d] = ports[everyone, step, turn[d] % cables[everyone, step]]
            egress[d, root] = fabric.destination_port[d]
    return egress


def _turns(fabric: Fabric) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64[T + S]: place of each destination among those of its switch."""
    guid = fabric.nodes.destinations
    order = np.lexsort((guid, fabric.destination_switch))
    root = fabric.destination_switch[order]
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.searchsorted(root, root)
    return turn


def _steps(grid: Grid, root: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64[S]: the next step of each switch towards `root`: 2 n up in dimension n, 2 n + 1 down;
    0 at the root."""
    step = np.zeros(len(grid.place), np.int64)
    for n in range(len(grid.dims) - 1, -1, -1):
        k, coordinate = grid.dims[n], grid.place[:, n]
        ahead = (coordinate[root] - coordinate) % k
        up = (2 * ahead < k) | ((2 * ahead == k) & ((coordinate % 2 == 0) | (k == 2)))
        step = np.where(ahead > 0, 2 * n + ~up, step)
    return step


def _ports(
    fabric: Fabric, grid: Grid
) -> tuple[U8, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """(uint8[S, 2 n, ·] ports of each step, int64[S, 2 n] how many there are)."""
    steps = 2 * len(grid.dims)
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source[live], fabric.channel_target[live]
    moved = (grid.place[target] - grid.place[source]) % grid.dims
    dimension = moved.argmax(axis=1)
    step = 2 * dimension + (moved.max(axis=1) != 1)
    slot = source * steps + step
    order = np.argsort(slot, kind="stable")  # channels of a switch come by port
    turn = np.arange(len(order)) - np.searchsorted(slot[order], slot[order])
    ports = np.full((fabric.switches * steps, int(turn.max(initial=0)) + 1), NO_ROUTE, np.uint8)
    ports[slot[order], turn] = fabric.channel_port[live][order]
    count = np.maximum(np.bincount(slot, minlength=len(ports)), 1)
    return ports.reshape(fabric.switches, steps, -1), count.reshape(fabric.switches, steps)
