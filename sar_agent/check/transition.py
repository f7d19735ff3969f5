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
    hosts; False where the two are not of the same nodes and lanes, or lanes are chosen hop by hop:
    SL2VL tables change port by port, and which of them are new when is not known."""
    if after.hops is not None or not before.comparable(after.wiring, after.egress, after.level):
        return False
    moved, _ = after.wiring.moved(before.wiring)
    ports = int(after.wiring.ports)
    mixed = (before.counts > 0).view(np.uint8)
    # Who was on a cable that is no more waits for nothing.
    s, port = moved[moved[:, 1] < ports].T
    mixed.reshape(len(mixed), -1, ports, ports)[:, s, port] = 0
    mixed |= after.counts > 0
    for offset, new in enumerate(after.egress):
        rows = before.egress[offset], new
        levels = before.level[offset], after.level[offset]
        changed = changed_entries(after.wiring, moved, rows, levels) > 0
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
    switches = np.uint32(rows[0].shape[1])
    ports, one, zero = wiring.ports, np.uint32(1), np.uint32(0)
    _, degree, queue, mark = scratch_of(wiring)
    following = np.empty((2, switches), np.uint32)
    for d in range(len(changed)):
        if not (changed[d] and wiring.asks[d]):
            continue
        root = wiring.root[d]
        degree[:], mark[:] = 0, 0
        for which in range(2):
            row, level = rows[which][d], levels[which][d]
            for s in range(switches):
                port = np.uint32(row[s])
                column = port if port < ports else ports
                w = wiring.next[s * (ports + one) + column]
                following[which, s] = w
                degree[w] += one
                lane = level[s] % wiring.lanes if len(level) else zero
                mark[s] |= wiring.sends[wiring.asks[d] - one, s] << lane
                if before.asks[d]:
                    mark[s] |= before.sends[before.asks[d] - one, s] << lane
        taken = zero
        for s in range(switches):
            queue[taken] = s
            taken += np.uint32(degree[s] == 0)
        i = zero
        while i < taken:
            v = np.uint32(queue[i])
            i += one
            for which in range(2):
                w = following[which, v]
                if v == root or w >= switches:
                    continue
                mark[w] |= mark[v]
                degree[w] -= one
                if degree[w] == 0:
                    queue[taken] = w
                    taken += one
                for then in range(2):
                    if mark[v] and rows[then][d, w] < ports:
                        dependency = (v * ports + rows[which][d, v]) * ports + rows[then][d, w]
                        _set(mixed, dependency, mark[v])
        if taken < switches:
            return False
    return True


@njit(cache=True)
def _set(mixed: NDArray[np.uint8], dependency: int, passing: int) -> None:  # pragma: no cover
    """Puts in a dependency for all who pass."""
    for plane in range(len(mixed)):
        mixed[plane, dependency] |= passing >> plane & 1
