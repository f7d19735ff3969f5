"""Proves mixtures of tables by channel numbers alone, in one pass over the entries.

At every switch that packets to a destination can pass, each channel by which one may arrive, by any
of the tables, must have a smaller number than each channel by which it may leave, by any of them.
Then the numbers rise along every path of every mixture: no packet goes in a circle, none is led to
an entry without a live cable, and no dependency closes a credit loop, whichever switch changes
when. The numbers must rise along the paths of all trees that do not change, too; that is asked of
the counted dependencies (`dependencies_rise`).

It is enough, but not necessary: what is not proved here, `mixed_tables.py` may still prove. It
serves one lane; elsewhere the lanes in which packets pass a switch have to be found first.
"""

from __future__ import annotations

import numpy as np

from sar_agent.check.mixed_tables import Rows
from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U32, Bool
from sar_agent.util.kernels import kernel, kernel_part

MOST = np.uint32(0xFFFFFFFF)
"""Above all numbers: of ports to terminals, and of switches that are down."""


def rising_mixtures(wiring: Wiring, rows: Rows, which: Bool, numbers: U32) -> Bool:
    """bool[D]: destinations in `which` (bool[D]) of which every mixture of `rows`, K times uint8[D,
    S], is proved; `numbers` is uint32[1, S, P], and a port without a number proves nothing."""
    padded = np.zeros((wiring.switches, int(wiring.ports) + 1), np.uint32)
    padded[:, :-1] = numbers[0]
    return _rising(wiring, rows, which, padded.ravel())


@kernel
def _rising(wiring: Wiring, rows: Rows, which: Bool, numbers: U32) -> Bool:  # pragma: no cover
    """`numbers` uint32[S, P + 1], flat; 0 in column P."""
    switches, ports, one = np.uint32(wiring.sends.shape[1]), wiring.ports, np.uint32(1)
    width = ports + one
    proved = np.zeros(len(which), np.bool_)
    highest = np.empty(switches + 2, np.uint32)  # of the channels by which packets may arrive
    lowest = np.empty(switches, np.uint32)  # of the channels by which they may leave
    queue = np.empty(switches, np.uint32)
    for d in range(len(which)):
        if not which[d]:
            continue
        kind, root = wiring.destination_kind[d], np.uint32(wiring.root[d])
        if kind == 0:
            proved[d] = True
            continue
        arrives = True
        for k in range(len(rows)):
            arrives &= rows[k][d, root] == wiring.last[d]
        if not arrives:
            continue
        # All switches at once, whether or not packets pass them: enough on most trees.
        highest[:] = 0
        at = np.uint32(0)
        for s in range(switches):
            low = MOST
            for k in range(len(rows)):
                port = np.uint32(rows[k][d, s])
                edge = at + (port if port < ports else ports)
                w, number = np.uint32(wiring.next[edge]), numbers[edge]
                highest[w] = max(highest[w], number)
                low = min(low, number)
            lowest[s] = low
            at += width
        lowest[root] = MOST
        falls = np.uint32(0)
        for s in range(switches):
            falls += highest[s] >= lowest[s]
        if falls:
            falls = _falls_where_packets_pass(wiring, rows, d, numbers, highest, lowest, queue)
        proved[d] = falls == 0
    return proved


@kernel_part
def _falls_where_packets_pass(
    wiring: Wiring, rows: Rows, d: int, numbers: U32, highest: U32, lowest: U32, queue: U32
) -> np.uint32:  # pragma: no cover
    """The number of switches, of those that packets to `d` can pass, at which a number may not
    rise; `lowest` is known, the other arrays are scratch."""
    switches, ports, one = np.uint32(wiring.sends.shape[1]), wiring.ports, np.uint32(1)
    width, root = ports + one, np.uint32(wiring.root[d])
    senders = wiring.sends[wiring.destination_kind[d] - one]
    size, i, falls = np.uint32(0), np.uint32(0), np.uint32(0)
    for s in range(switches):
        highest[s] = MOST  # not passed
        if senders[s]:
            highest[s] = 0
            queue[size] = s
            size += one
    while i < size:
        v = queue[i]
        i += one
        if v == root:
            continue
        for k in range(len(rows)):
            port = np.uint32(rows[k][d, v])
            edge = v * width + (port if port < ports else ports)
            w, number = np.uint32(wiring.next[edge]), numbers[edge]
            if w >= switches:
                continue
            if highest[w] == MOST:
                highest[w] = 0
                queue[size] = w
                size += one
            highest[w] = max(highest[w], number)
    for at in range(size):
        falls += np.uint32(highest[queue[at]] >= lowest[queue[at]])
    return falls
