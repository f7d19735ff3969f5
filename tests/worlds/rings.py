"""Rings of switches, and routes around them."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.routing import Routes


def ring() -> Fabric:
    """Three switches; two cables from 0 to 1 and from 1 to 2, one from 2 to 0; a host on each."""
    builder = FabricBuilder("ring")
    for switch in range(3):
        builder.add_switch(100 + switch, f"s{switch}", 8)
    for a, a_port, b, b_port in (
        (0, 1, 1, 1),
        (0, 2, 1, 2),
        (1, 3, 2, 1),
        (1, 4, 2, 2),
        (2, 3, 0, 3),
    ):
        builder.add_link(a, a_port, b, b_port)
    for switch, port in enumerate((4, 5, 4)):
        builder.add_terminal(10 + switch, f"h{switch} HCA-1", f"h{switch}", switch, port)
    return builder.build()


def around(fabric: Fabric, to_last: list[int]) -> Routes:
    """Clockwise, all of them; `to_last`: the ports towards the host on switch 2."""
    hosts = [[4, 3, 3], [1, 5, 3], to_last]
    switches = [[0, 1, 3], [1, 0, 1], [3, 3, 0]]
    return Routes("by-hand", fabric.digest, np.array([hosts + switches], np.uint8))
