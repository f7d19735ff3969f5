"""Tables that the subnet manager has amended by itself after a failure, as routes to plan from.

OpenSM's plugin repairs a plan along its channel numbers. At a switch without hosts it may leave a
destination without a route, where no path with rising numbers leads there and no packet passes.
Proofs of whole tables, and engines that start from them, expect an entry at every live switch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.check.walk import trace
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.routes import NO_ROUTE, Routes


def completed(fabric: Fabric, routes: Routes) -> Routes:
    """The routes with an entry at each live switch without hosts that had none; it leads to a
    neighbour that has one. Unknown hosts may then not send at such a switch.

    A tree is left as it is where packets of known hosts do not arrive: the check finds that."""
    wanted = np.concatenate([fabric.terminal_up, fabric.switch_up])
    lacking = [wanted & _lacks(table, fabric) for table in routes.egress]
    if not any(map(np.any, lacking)):
        return routes
    wiring, egress, filled = (
        wiring_of(fabric),
        routes.egress.copy(),
        np.zeros_like(fabric.switch_up),
    )
    hosts, beside = fabric.leaves, wiring.following[:, :-1]
    for table, rows in zip(egress, lacking, strict=True):
        rows &= (trace(wiring, table, rows)[:, hosts] >= 0).all(axis=1)
        trees = np.flatnonzero(rows)
        while True:
            # The two last columns stand for ports that lead nowhere.
            has = np.pad(table[trees] != NO_ROUTE, ((0, 0), (0, 2)))
            at, s = np.nonzero(~has[:, :-2] & fabric.switch_up)
            open_ports = has[at[:, None], beside[s]]
            grown = open_ports.any(axis=1)
            if not grown.any():
                break
            table[trees[at[grown]], s[grown]] = open_ports[grown].argmax(axis=1)
            filled[s[grown]] = True
    if not filled.any():
        return routes
    senders = None if routes.senders is None else routes.senders & ~filled
    return replace(routes, egress=egress, senders=senders, mark=0)


def _lacks(table: U8, fabric: Fabric) -> Bool:
    """bool[D] of uint8[D, S]: whether a live switch has no route."""
    lacks: Bool = ((table == NO_ROUTE) & fabric.switch_up).any(axis=1)
    return lacks
