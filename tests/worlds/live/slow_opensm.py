"""An OpenSM that is slowed down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.install.transit import CommitResult, Transit
from sar_agent.opensm.plugin_manager import PluginManager
from tests.worlds.live.built import built
from tests.worlds.live.site import Site, site

CUT = frozenset({("leaf0", 5)})


@contextmanager
def slow(deadline: int = 60, **opensm: Any) -> Iterator[tuple[Site, Path]]:
    """A site with generation 5 in force, and the file that keeps the engine "slow" computing."""
    beside = built("opensm_bridge", "libsarslow.so")
    opensm |= {"routing_engine": "sar,slow", "more_plugin_options": f"deadline={deadline}"}
    with site(beside=beside, **opensm) as here:
        here.load(here.tree.routes(5))
        gate = here.sm.folder / "gate"
        try:
            yield here, gate
        finally:
            gate.unlink(missing_ok=True)


def falls_back(here: Site, gate: Path) -> None:
    """A dead link makes the routes stale; the engine "slow" begins to compute, and does not end."""
    gate.touch()
    here.fabric.unlink(*next(iter(CUT)))
    here.sm.sweep()
    here.wait(lambda s: s.state == "building")


class SeenTransit(Transit):
    """Remembers from which tables it installed."""

    def __init__(self, manager: PluginManager) -> None:
        super().__init__(manager, AssignedLevels(manager.path.parent))
        self.seen: list[InForce] = []

    def bring(self, plan: Plan, before: InForce, *more: Any, **others: Any) -> CommitResult:
        self.seen.append(before)
        return super().bring(plan, before, *more, **others)
