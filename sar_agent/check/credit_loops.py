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

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.counted_trees import Counts
from sar_agent.check.hop_lanes import NO_HOPS, HopLanes
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U8
from sar_agent.util.kernels import kernel


def loop_free(wiring: Wiring, counts: Counts, hops: HopLanes | None = None) -> tuple[bool, bool]:
    """Whether there is no loop, (between hosts, for everyone). It takes one search where there is
    no loop at all."""
    lanes, used = len(counts) // 2, (counts > 0).view(np.uint8)
    everyone = not credit_loop(wiring, used[:lanes] | used[lanes:], hops)
    return everyone or not credit_loop(wiring, used[:lanes], hops), everyone


def credit_loop(
    wiring: Wiring, used: U8, hops: HopLanes | None = None
) -> list[tuple[int, int, int]]:
    """(switch, port, lane) of the channels of one cycle, in order; empty where there is no cycle.
    `used` is uint8[L, S · P · P]; without `hops`, packets stay in their lanes."""
    channels = wiring.switches * int(wiring.ports)
    cycle = _find_loop(wiring, hops or NO_HOPS, hops is not None, used)
    channel, lane = cycle % channels, cycle // channels
    ports = int(wiring.ports)
    parts = (channel // ports).tolist(), (channel % ports).tolist(), lane.tolist()
    return list(zip(*parts, strict=True))


@kernel
def _find_loop(
    wiring: Wiring, hops: HopLanes, by_hop: bool, used: U8
) -> NDArray[np.int64]:  # pragma: no cover
    """Nodes lane · S · P + s · P + p of a cycle, by depth-first search; empty where there is no
    cycle."""
    switches, ports = np.uint32(wiring.sends.shape[1]), wiring.ports
    width, one = ports + np.uint32(1), np.uint32(1)
    channels = switches * ports
    nodes = channels * wiring.lanes
    colour = np.zeros(nodes, np.uint8)  # 0 new, 1 on the stack, 2 done
    turn = np.zeros(nodes, np.uint8)
    stack = np.empty(nodes, np.uint32)
    for first in range(nodes):
        if colour[first]:
            continue
        stack[0] = first
        depth = one
        while depth:
            node = np.uint32(stack[depth - one])
            colour[node] = 1
            lane, channel = np.uint32(node // channels), np.uint32(node % channels)
            w = np.uint32(wiring.next[channel // ports * width + channel % ports])
            q, then = np.uint32(turn[node]), np.uint32(0)
            if w >= switches:
                q = ports  # a terminal's port: dependencies end there
            while q < ports:
                if used[lane, channel * ports + q]:
                    then = lane
                    if by_hop:
                        entry = hops.entry[channel // ports, channel % ports]
                        then = np.uint32(hops.lane[w, entry, q])
                    then = then * channels + w * ports + q
                    if colour[then] < 2:
                        break
                q += one
            if q == ports:
                colour[node] = 2
                depth -= one
            elif colour[then] == 1:
                begin = depth - one
                while stack[begin] != then:
                    begin -= one
                return stack[begin:depth].astype(np.int64)
            else:
                turn[node] = q
                stack[depth] = then
                depth += one
    return np.empty(0, np.int64)
