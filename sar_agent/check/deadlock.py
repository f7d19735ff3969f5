"""No credit loop: the channel dependency graph of every virtual lane is acyclic.

Dally and Seitz's condition. A dependency (c1, c2) exists where some packet holds c1 and asks for
c2 next. Channels from a terminal and into one begin and end every chain, so only channels between
switches matter; `routing/dependencies.py` says how the graph is held.

Two questions are asked. *Between hosts* is what jobs can close, and must hold. *Everyone* adds
the switches' own LIDs as destinations, and the aggregation units that newer switches show as
ports of their own. Where those sit on spines, or cables are broken, no choice of shortest paths
may answer it in one lane; the traffic is next to nothing and every engine of OpenSM leaves it
open, so it is reported beside, not required.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.routing.dependencies import collect_dependencies, empty_dependencies, tables_of
from sar_agent.routing.routes import Routes


def credit_loop(
    fabric: Fabric, routes: Routes, *, everyone: bool = False
) -> tuple[int, list[int]] | None:
    """(lane, channels of one cycle in order) or None where every lane is acyclic.

    All LID offsets share the lanes, so their dependencies are joined. `everyone`: also with the
    switches' own LIDs as destinations, and aggregation units as destinations and senders.
    """
    lanes = routes.virtual_lanes
    depends = empty_dependencies(fabric, lanes)
    sends = fabric.terminals_at > 0
    wanted = np.zeros(fabric.destinations, np.bool_)
    wanted[: fabric.terminals] = fabric.is_host_port
    if everyone:
        wanted[: fabric.terminals] = fabric.terminal_up
        wanted[fabric.terminals :] = True
        sends = sends.copy()
        sends[fabric.terminal_switch[fabric.terminal_up]] = True
    for offset, egress in enumerate(routes.egress):
        level = None if routes.service_level is None else routes.service_level[offset]
        collect_dependencies(tables_of(fabric, egress, level, sends, wanted), depends)
    for lane in range(lanes):
        cycle = _find_cycle(depends[lane], fabric.channel_target, fabric.channel_offset)
        if len(cycle):
            return lane, [int(c) for c in cycle]
    return None


@njit(cache=True)
def _find_cycle(depends: NDArray[np.uint8], target: I32, offset: I32) -> I32:  # pragma: no cover
    """A cycle of channels, empty where there is none: depth-first search with an explicit stack."""
    channels = len(target)
    colour = np.zeros(channels, np.int8)  # 0 new, 1 on the stack, 2 done
    stack = np.empty(channels, np.int32)
    turn = np.zeros(channels, np.int32)
    for first in range(channels):
        if colour[first] != 0:
            continue
        stack[0] = first
        depth = 1
        colour[first] = 1
        while depth:
            c = stack[depth - 1]
            base = offset[target[c]]
            degree = offset[target[c] + 1] - base
            moved = False
            while turn[c] < degree:
                k = turn[c]
                turn[c] += 1
                if depends[c, k] == 0:
                    continue
                following = base + k
                if colour[following] == 1:
                    begin = depth - 1
                    while stack[begin] != following:
                        begin -= 1
                    return stack[begin:depth].copy()
                if colour[following] == 0:
                    colour[following] = 1
                    stack[depth] = following
                    depth += 1
                    moved = True
                    break
            if not moved:
                colour[c] = 2
                depth -= 1
    return np.empty(0, np.int32)
