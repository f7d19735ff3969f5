"""A place where tables go into force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.recent import RecentTables
from sar_agent.install.subnet_manager import InForce
from sar_agent.install.transit import CommitResult, Transit
from sar_agent.jobs import JobMix
from sar_agent.routing import Routes
from tests.worlds.fake_opensm import FakeBridge
from tests.worlds.rings import ring

OLD, NEW, MIXED = [1, 4, 4], [2, 3, 4], [1, 3, 4]
"""Ports towards the host on switch 2; OLD and NEW must not be mixed."""


class Place:
    """A fabric (else a ring of three switches) with `routes` in force as generation 1."""

    def __init__(self, folder: Path, routes: Routes, fabric: Fabric | None = None) -> None:
        self.fabric = fabric or ring()
        self.fake = FakeBridge(folder, self.fabric)
        self.fake.tables, self.fake.generation = routes_to_file(self.fabric, routes, 1), 1
        self.fake.engine, self.fake.built_at = "sar", 0
        self.path = folder / "routes.sar"
        self.slept: list[float] = []
        self.now = 0.0
        self.recent = RecentTables(lambda: self.now)
        self.transit = Transit(
            self.fake.manager, AssignedLevels(folder), recent=self.recent, sleep=self.sleep
        )

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def plan(self, routes: Routes) -> Plan:
        return make_plan(2, self.fabric, JobMix(()), routes)

    def go(
        self, plan: Plan, between: Callable[[Plan], object] = lambda stage: None, **more: Any
    ) -> CommitResult:
        """`between` is called with each stage that was installed."""
        before, install = self.transit.before(plan.fabric), self.transit.manager.install

        def seen(stage: Plan, proved_from: str | None) -> InForce:
            found = install(stage, proved_from)
            between(stage)
            return found

        with patch.object(self.transit.manager, "install", seen):
            return self.transit.bring(self.transit.examine(plan, before), before, **more)
