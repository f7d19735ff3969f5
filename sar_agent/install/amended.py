"""Tables that the subnet manager has amended by itself after a failure, as routes to plan from.

OpenSM's plugin repairs a plan along its channel numbers. At a switch without hosts it may leave a
destination without a route, where no path with rising numbers leads there and no packet passes.
Proofs of whole tables, and engines that start from them, expect an entry at every live switch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel


def completed(fabric: Fabric, routes: Routes) -> Routes:
    """The routes with an entry at each live switch that bears no hosts and has none, towards a
    neighbour that has one; such a switch is then no place where unknown hosts may send.

    A tree is left as it is where packets of known hosts come to a switch without an entry: they are
    lost, and the check finds that."""
    wanted = np.concatenate([fabric.terminal_up, fabric.switch_up])
    lacking = [np.flatnonzero(wanted & _lacks(table, fabric.switch_up)) for table in routes.egress]
    if not any(map(len, lacking)):
        return routes
    ports = fabric.channel_by_port
    following = np.where(ports < 0, -1, fabric.channel_target[ports]).astype(np.int32)
    up = fabric.channel_up & fabric.switch_up[fabric.channel_source]
    down = np.flatnonzero(~(up & fabric.switch_up[fabric.channel_target]))
    following[fabric.channel_source[down], fabric.channel_port[down]] = -1
    hosts = (fabric.terminals_at > 0) & fabric.switch_up
    egress, filled = routes.egress.copy(), np.zeros(fabric.switches, np.bool_)
    roots = fabric.destination_switch.astype(np.int32)
    for table, rows in zip(egress, lacking, strict=True):
        _complete(following, table, roots, rows, hosts, fabric.switch_up, filled)
    if not filled.any():
        return routes
    senders = None if routes.senders is None else routes.senders & ~filled
    return replace(routes, egress=egress, senders=senders, mark=0)


@kernel
def _lacks(table: U8, up: Bool) -> Bool:  # pragma: no cover
    """bool[D] of uint8[D, S]: whether a switch that is `up` (bool[S]) has no route."""
    lacks = np.zeros(len(table), np.bool_)
    for d in range(len(table)):
        row, count = table[d], 0
        for s in range(len(row)):
            count += (row[s] == NO_ROUTE) & up[s]
        lacks[d] = count > 0
    return lacks


@kernel
def _complete(
    following: I32,
    table: U8,
    roots: I32,
    rows: NDArray[np.intp],
    hosts: Bool,
    up: Bool,
    filled: Bool,
) -> None:  # pragma: no cover
    """`following` int32[S, P]: the switch behind a port, or -1; `table` uint8[D, S]; completes the
    trees `rows`, and marks the switches that got an entry in `filled` bool[S]."""
    switches, ports = following.shape
    passed = np.empty(switches, np.bool_)
    for d in rows:
        row, lost = table[d], False
        passed[:] = False
        for source in range(switches):
            v = source if hosts[source] else -1
            while v >= 0 and not passed[v] and not lost:
                passed[v] = True
                if v == roots[d]:
                    break
                lost = row[v] >= ports
                v = -1 if lost else following[v, row[v]]
        grown = not lost
        while grown:
            grown = False
            for s in range(switches):
                if row[s] != NO_ROUTE or not up[s] or passed[s]:
                    continue
                for p in range(1, ports):
                    w = following[s, p]
                    if w >= 0 and row[w] != NO_ROUTE:
                        row[s] = p
                        filled[s] = True
                        grown = True
                        break
