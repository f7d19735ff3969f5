"""No credit loop: the channel dependency graph of every virtual lane is acyclic.

This is Dally and Seitz's condition. A dependency (c1, c2) exists where some packet holds channel
c1 and waits for c2. Channels from a terminal and into one begin and end every chain, so only
channels between switches matter; `check/counted_trees.py` counts the dependencies.

Two conditions are examined. *Between hosts*: traffic of jobs closes no loop; this is required.
*Everyone*: nor does traffic to the switches' own LIDs, and to and from the aggregation units that
newer switches show as ports of their own. Where units are attached to spines, or cables are
broken, no shortest paths may satisfy the second condition in one lane. That traffic is next to
nothing, and every engine of OpenSM ignores it, so the condition is reported but not required.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.counted_trees import Counts
from sar_agent.check.wiring import Wiring
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.util.kernels import kernel

Plane = NDArray[np.unsignedinteger[Any]]
"""One plane of `Counts`: uint8, 16 or 32[S · P · P]."""


def loop_free(wiring: Wiring, counts: Counts) -> tuple[bool, bool]:
    """Whether every lane is free of loops, (between hosts, for everyone). It takes one search where
    there is no loop at all."""
    lanes = len(counts) // 2
    everyone = all(_acyclic(wiring, counts[n], counts[lanes + n]) for n in range(lanes))
    hosts = everyone or all(_acyclic(wiring, counts[n], counts[n]) for n in range(lanes))
    return hosts, everyone


def lanes_loop_free(wiring: Wiring, used: Counts) -> bool:
    """Whether every lane is free of loops; `used` has one plane per lane."""
    return all(_acyclic(wiring, plane, plane) for plane in used)


def credit_loop(fabric: Fabric, wiring: Wiring, counts: Counts) -> tuple[int, list[int]] | None:
    """(lane, channels of one cycle between hosts, in order); None where every lane is acyclic."""
    ports = int(wiring.ports)
    channel = fabric.channel_source * ports + fabric.channel_port
    degree = np.diff(fabric.channel_offset)[fabric.channel_target]
    rank = np.arange(degree.max(initial=0))
    following = np.minimum(
        fabric.channel_offset[fabric.channel_target][:, None] + rank, fabric.channels - 1
    )
    for lane, plane in enumerate(counts[: len(counts) // 2]):
        table = plane.reshape(-1, ports)
        depends = table[channel[:, None], fabric.channel_port[following]] > 0
        cycle = _find_cycle(
            (depends & (rank < degree[:, None])).view(np.uint8),
            fabric.channel_target,
            fabric.channel_offset,
        )
        if len(cycle):
            return lane, [int(c) for c in cycle]
    return None


@kernel
def _acyclic(wiring: Wiring, plane: Plane, other: Plane) -> bool:  # pragma: no cover
    """Whether the dependencies counted in either plane close no cycle: depth-first search, which
    visits each dependency once."""
    switches, ports = np.uint32(wiring.sends.shape[1]), wiring.ports
    width = ports + np.uint32(1)
    colour = np.zeros(switches * ports, np.uint8)  # 0 new, 1 on the stack, 2 done
    turn = np.zeros(switches * ports, np.uint8)
    stack = np.empty(switches * ports, np.uint32)
    for first in range(switches * ports):
        if colour[first]:
            continue
        stack[0] = first
        depth = np.uint32(1)
        while depth:
            channel = np.uint32(stack[depth - np.uint32(1)])
            colour[channel] = 1
            w = np.uint32(wiring.next[channel // ports * width + channel % ports])
            following, q = w * ports, np.uint32(turn[channel])
            if w >= switches:
                q = ports  # a terminal's port: dependencies end there
            while q < ports:
                at = channel * ports + q
                # `colour` is read only where a dependency is counted.
                if (plane[at] | other[at]) and colour[following + q] < 2:
                    break
                q += np.uint32(1)
            if q == ports:
                colour[channel] = 2
                depth -= np.uint32(1)
            elif colour[following + q] == 1:
                return False
            else:
                turn[channel] = q
                stack[depth] = following + q
                depth += np.uint32(1)
    return True


@kernel
def _find_cycle(depends: NDArray[np.uint8], target: I32, offset: I32) -> I32:  # pragma: no cover
    """A cycle of channels, empty where there is no cycle: depth-first search with its own stack.

    `depends` is uint8[C, ·]: whether channel c is followed by each channel that leaves its end.
    """
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
