"""Does every switch's table lead to every destination, over live links, without a loop?

One walk per destination with path marking: a switch that was proved once is not walked again, so
a destination takes O(S) steps, however long its paths are. `counted_trees.py` proves the same
faster; this check also explains the first fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel

FAULTS = ("", "no route", "a port without a live link", "a loop", "the wrong last port")
_OK, _NO_ROUTE, _DEAD, _LOOP, _WRONG_END = range(5)


@dataclass(frozen=True)
class Reachability:
    """The number of (switch, destination) pairs that fail, and a description of the first."""

    unreachable_pairs: int
    first: str


class _Walk(NamedTuple):
    egress: U8
    channel_by_port: I32
    target: I32
    up: Bool
    root: I32
    last_port: U8
    to: Bool
    """bool[D], destinations that must be reached."""
    by: Bool
    """bool[S], switches that must reach them."""


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
    total, first = 0, ""
    for offset, egress in enumerate(routes.egress):
        walk = _Walk(
            egress,
            fabric.channel_by_port,
            fabric.channel_target,
            fabric.channel_up,
            fabric.destination_switch,
            fabric.destination_port,
            to,
            by,
        )
        bad, switch, destination, fault = _walk_all(walk)
        if bad and not first:
            first = (
                f'from switch "{fabric.switch_name[switch]}" to '
                f"{fabric.destination_name(destination)}: {FAULTS[fault]}"
                + (f" (LID offset {offset})" if offset else "")
            )
        total += bad
    return Reachability(total, first)


@kernel
def _walk_all(walk: _Walk) -> tuple[int, int, int, int]:  # pragma: no cover
    """(failing pairs, first failing switch, its destination, fault code)."""
    destinations, switches = walk.egress.shape
    state = np.empty(switches, np.int8)  # -1 unknown, -2 on the path being walked, else fault
    path = np.empty(switches, np.int32)
    bad, first_switch, first_destination, first_fault = 0, 0, 0, _OK
    for d in range(destinations):
        if not walk.to[d]:
            continue
        table = walk.egress[d]
        root = walk.root[d]
        state[:] = -1
        state[root] = _OK if table[root] == walk.last_port[d] else _WRONG_END
        for s in range(switches):
            if not walk.by[s]:
                continue
            length = 0
            v = s
            while state[v] == -1:
                state[v] = -2
                path[length] = v
                length += 1
                port = table[v]
                c = walk.channel_by_port[v, port]
                if c < 0 or not walk.up[c]:
                    state[v] = _NO_ROUTE if port == 255 else _DEAD
                    break
                v = walk.target[c]
            fault = _LOOP if state[v] == -2 else state[v]
            for i in range(length):
                state[path[i]] = fault
            if state[s] != _OK:
                bad += 1
                if first_fault == _OK:
                    first_switch, first_destination, first_fault = s, d, state[s]
    return bad, first_switch, first_destination, first_fault
