"""Bandwidth that links lost by waiting: PortXmitWait in bits a second.

A port counts a tick in which it had data to send and could not, because the far end had no room or
the switch served another port. A tick is the time of 8 bytes on today's devices and of 32 on older
ones, so ticks a second times these bytes are bytes a second that were not sent: the formula is
NVIDIA's, in the issue 3 of its ib-traffic-monitor.
**Weak spot:** which devices are older is not listed there; no real switch was asked here.
"""

from __future__ import annotations

import numpy as np

from sar_agent.counters.window import CounterWindow
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64


def lost_gbits(fabric: Fabric, waits: F64, wait_bytes: int = 8) -> F64:
    """float64[C]: Gbit/s that each channel lost, at most its speed, of `waits` in ticks a second
    (float64[C]); NaN where they are not known."""
    return np.minimum(waits * wait_bytes * 8 / 1e9, fabric.channel_rate.astype(np.float64))


def lost_of(fabric: Fabric, window: CounterWindow, wait_bytes: int = 8) -> F64:
    """The same of a window."""
    return lost_gbits(fabric, window.waits, wait_bytes)
