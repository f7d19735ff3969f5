"""The agent's way into force while a real OpenSM falls back, on purpose: found at 11,664 hosts,
where updn was in force from 37 to 41 s, and the history recorded 2,924 changed entries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net
from sar_agent.formats.routes_file import read_generation
from sar_agent.install.changes import table_changes
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import InForce, NotYet
from sar_agent.install.transit import CommitResult, Transit
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import LoadAnswer, PluginClient
from sar_agent.opensm.plugin_install import next_path, read_in_force
from sar_agent.opensm.plugin_manager import PluginManager
from sar_agent.routing import Options, load_engine
from tests.live.helpers.site import Site
from tests.live.test_bridge_race import falls_back, slow

pytestmark = pytest.mark.live


class Late(PluginClient):
    """Between the look before a load and the load a cable dies, and OpenSM begins to route."""

    def __init__(self, here: Site, gate: Path, pool: ThreadPoolExecutor) -> None:
        super().__init__(here.bridge.socket_path)
        self.here, self.gate, self.pool, self.loads = here, gate, pool, 0

    def load(self, generation: int, proved_from: str | None) -> LoadAnswer:
        self.loads += 1
        if self.loads > 1:
            return super().load(generation, proved_from)
        falls_back(self.here, self.gate)
        load = self.pool.submit(super().load, generation, proved_from)
        self.gate.unlink()
        return load.result()


class SeenTransit(Transit):
    """Remembers from which tables it installed."""

    def __init__(self, manager: PluginManager) -> None:
        super().__init__(manager, AssignedLevels(manager.path.parent))
        self.seen: list[InForce] = []

    def bring(self, plan: Plan, before: InForce, *more: Any, **others: Any) -> CommitResult:
        self.seen.append(before)
        return super().bring(plan, before, *more, **others)


def without_the_cable(here: Site, folder: Path) -> Fabric:
    net = folder / "fabric.net"
    net.write_text(here.tree.net())
    fabric = read_ibsim_net(net)
    leaf = fabric.switch_name.index("leaf0")
    return fabric.with_links_down([int(fabric.channel_by_port[leaf, 5])])


def planned(fabric: Fabric) -> Plan:
    mix = JobMix(())
    return make_plan(6, fabric, mix, load_engine("dfsssp").route(fabric, mix, Options()))


def test_what_a_fallback_rewrote_is_read_examined_and_counted(tmp_path: Path) -> None:
    with slow() as (here, gate), ThreadPoolExecutor(1) as pool:
        bridge = Late(here, gate, pool)
        transit = SeenTransit(PluginManager(bridge, here.sm.routes_path))
        fabric = without_the_cable(here, tmp_path)
        arrived = transit.install(planned(fabric))
        first, second = transit.seen
        assert (first.generation, second.generation) == (5, 0) and bridge.loads == 2
        assert second.status.engine == "slow" and second.confirmed
        assert arrived.changed == table_changes(fabric, second.routes, arrived.in_force.routes)
        assert arrived.changed != table_changes(fabric, first.routes, arrived.in_force.routes)
        assert arrived.in_force.confirmed and arrived.in_force.generation == 6
        assert read_generation(here.sm.routes_path) == 6
        assert not next_path(here.sm.routes_path).exists()


def test_nothing_is_asked_for_while_another_engine_computes(tmp_path: Path) -> None:
    with slow() as (here, gate):
        fabric = without_the_cable(here, tmp_path)
        falls_back(here, gate)
        with pytest.raises(NotYet, match=r"still at work on the tables \(building\)"):
            read_in_force(here.bridge, fabric, patience=0.2)
        gate.unlink()
        here.wait(lambda status: status.settled and status.engine_in_force == "slow")
        manager = PluginManager(here.bridge, here.sm.routes_path)
        transit = Transit(manager, AssignedLevels(tmp_path))
        arrived = transit.install(planned(fabric))
        assert arrived.in_force.generation == 6 and arrived.transition
