"""Does every switch's table lead to every destination, over live links, without a loop?

`proof.py` answers the same faster; this check also counts what fails, and explains the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.check.walk import trace
from sar_agent.check.wiring import Wiring, wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.routes import NO_ROUTE, Routes


@dataclass(frozen=True)
class Reachability:
    """The number of (switch, destination) pairs that fail, and a description of the first."""

    unreachable_pairs: int
    first: str


def check_reachability(fabric: Fabric, routes: Routes, between_hosts: bool = False) -> Reachability:
    """Whether every switch reaches every live terminal and every switch, in every LID offset.

    With `between_hosts` only what jobs need is examined, leaf switches to hosts' ports: OpenSM's
    updn leaves roots without routes to each other. Terminals whose own link is down, and switches
    that died, cannot be reached and are left out.
    """
    to, by = np.concatenate([fabric.terminal_up, fabric.switch_up]), fabric.switch_up
    if between_hosts:
        to = np.concatenate([fabric.is_host_port, np.zeros(fabric.switches, np.bool_)])
        by = by & (fabric.terminals_at > 0)
    wiring, total, first = wiring_of(fabric), 0, ""
    for offset, table in enumerate(routes.egress):
        bad = (trace(wiring, table, to) < 0) & by
        if not first and (lost := int(np.argmax(bad))) | bad.flat[0]:
            d, s = divmod(lost, fabric.switches)
            first = (
                f'from switch "{fabric.switch_name[s]}" to {fabric.destination_name(d)}: '
                + _fault(wiring, table[d], d, s)
                + (f" (LID offset {offset})" if offset else "")
            )
        total += int(np.count_nonzero(bad))
    return Reachability(total, first)


def _fault(wiring: Wiring, row: U8, d: int, s: int) -> str:
    """Why packets from switch `s` do not arrive at destination `d`, whose entries are `row`."""
    for _ in range(wiring.switches):
        if s == wiring.root[d]:
            return "the wrong last port"
        if row[s] == NO_ROUTE:
            return "no route"
        s = int(wiring.following[s, min(row[s], int(wiring.ports))])
        if s >= wiring.switches:
            return "a port without a live link"
    return "a loop"
