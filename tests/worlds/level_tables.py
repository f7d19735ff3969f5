"""Tables whose service levels are followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.formats.conversion import routes_to_file
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import make_plan
from sar_agent.install.transit import CommitResult, Transit
from sar_agent.jobs import JobMix
from sar_agent.routing import Routes
from tests.worlds.fake_opensm import FakeBridge


def four() -> Fabric:
    """A ring of four switches with a host on each: port 2 leads onward, port 3 back."""
    b = FabricBuilder("ring")
    for s in range(4):
        b.add_switch(100 + s, f"s{s}", 12)
        b.add_terminal(900 + s, f"h{s} HCA-1", f"h{s}", s, 1)
    for s in range(4):
        b.add_link(s, 2, (s + 1) % 4, 3)
    return b.build()


FABRIC = four()


def told(*flows: int) -> Routes:
    """Tables that never change; of the four flows that go two hops onward, `flows` have level 1."""
    egress = np.full((1, 8, 4), 255, np.uint8)
    level = np.zeros_like(egress)
    for d in range(4):
        for s in range(4):
            gap = (d - s) % 4
            egress[0, d, s] = 1 if gap == 0 else 2 if gap <= 2 else 3
            egress[0, 4 + d, s] = 0 if gap == 0 else 2 if gap <= 2 else 3
    for flow in flows:
        level[0, (flow + 2) % 4, flow] = level[0, 4 + (flow + 2) % 4, flow] = 1
    return Routes("by-hand", FABRIC.digest, egress, virtual_lanes=2, service_level=level)


T0, T1, T2 = told(0, 1), told(1, 2), told(2, 3)


class Place:
    """T0 is in force; the clock stands at 1000."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.fake: Any = FakeBridge(folder, FABRIC)
        self.fake.tables, self.fake.generation = routes_to_file(FABRIC, T0, 1), 1
        self.fake.engine = "sar"
        self.levels = self.restart()

    def restart(self) -> AssignedLevels:
        self.levels = AssignedLevels(self.folder, lambda: self.now)
        return self.levels

    def go(self, routes: Routes) -> CommitResult:
        transit = Transit(self.fake.manager, self.levels)
        plan = make_plan(self.fake.generation + 1, FABRIC, JobMix(()), routes)
        arrived = transit.install(plan)
        self.now += 100
        return arrived
