"""May old tables and new ones be mixed, as they are while OpenSM sends them switch by switch?

Between two proved sets of tables, every mixture is possible: a switch may have the new entry for a
destination while the next still has the old. Safe is what holds for all of them at once:

- *No packet circles.* For each destination, old and new entries together close no circle. (If they
  did, the mixture that takes them as the circle does would be one of those that occur.)
- *No credit loop.* Whoever any mixture lets pass a switch may hold the old channel or the new, and
  ask for the old or the new of the next: all four are dependencies, in old service levels and new,
  beside those of trees that stay. It is not asked which can occur at the same time, so "no" means
  that nothing was proved.

Entries whose channel is dead lead nowhere now, so packets are lost there until the new ones arrive,
and hold up nobody.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.check.changes import changed_entries
from sar_agent.check.deadlock import loop_free
from sar_agent.check.proof import Proved
from sar_agent.check.trees import scratch_of
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U8


def transition_safe(before: Proved, after: Proved) -> bool:
    """Whether tables `before` may be replaced by `after` switch by switch, in any order. Between
    hosts; False where the two are not of the same nodes and lanes."""
    if not before.comparable(after.wiring, after.egress, after.level):
        return False
    moved, touched = after.wiring.moved(before.wiring)
    mixed = (after.counts > 0).view(np.uint8)
    for offset, new in enumerate(after.egress):
        rows = before.egress[offset], new
        levels = before.level[offset], after.level[offset]
        changed = changed_entries(after.wiring, moved, rows, levels) > 0
        changed |= len(touched) > 0
        if not _mix(before.wiring, after.wiring, rows, levels, changed, mixed):
            return False
    return loop_free(after.wiring, mixed)[0]


@njit(cache=True)
def _mix(
    before: Wiring,
    wiring: Wiring,
    rows: tuple[U8, U8],
    levels: tuple[U8, U8],
    changed: NDArray[np.bool_],
    mixed: NDArray[np.uint8],
) -> bool:  # pragma: no cover
    """Sets in `mixed` uint8[2 L, ·] what the trees of `changed` destinations may need in any
    mixture; False where one of these circles."""
    destinations, switches = rows[0].shape
    scratch = scratch_of(wiring)
    following = np.empty((2, switches), np.uint32)
    for d in range(destinations):
        if not (changed[d] and wiring.asks[d]):
            continue
        root = wiring.root[d]
        degree, queue, mark = scratch.degree, scratch.queue, scratch.mark
        degree[:] = 0
        for which in range(2):
            row = rows[which][d]
            for s in range(switches):
                port = min(np.int64(row[s]), np.int64(wiring.ports))
                w = wiring.next[s * (np.int64(wiring.ports) + 1) + port]
                following[which, s] = w
                degree[w] += w < switches
        mark[:] = 0
        lanes = len(mixed) // 2
        for which in range(2):
            level = levels[which][d]
            for s in range(switches):
                lane = level[s] % lanes if len(level) else 0
                mark[s] |= wiring.sends[wiring.asks[d] - 1, s] << np.uint32(lane)
                if before.asks[d]:
                    mark[s] |= before.sends[before.asks[d] - 1, s] << np.uint32(lane)
        taken = 0
        for s in range(switches):
            if degree[s] == 0:
                queue[taken] = s
                taken += 1
        i = 0
        while i < taken:
            v = queue[i]
            i += 1
            if v == root:
                continue
            for which in range(2):
                w = following[which, v]
                if w >= switches:
                    continue
                mark[w] |= mark[v]
                degree[w] -= 1
                if degree[w] == 0:
                    queue[taken] = w
                    taken += 1
                for then in range(2):
                    _set(wiring, mixed, v, rows[which][d, v], rows[then][d, w], mark[v])
        if taken < switches:
            return False
    return True


@njit(cache=True)
def _set(
    wiring: Wiring, mixed: NDArray[np.uint8], v: int, port: int, then: int, passing: int
) -> None:  # pragma: no cover
    """Puts in the dependency (v, port, then) for all who pass v."""
    ports = np.int64(wiring.ports)
    if then < ports:
        for plane in range(len(mixed)):
            mixed[plane, (v * ports + port) * ports + then] |= passing >> plane & 1
