"""After a load the agent reads back what is in force, whatever the plugin has answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.install.plan import Plan
from sar_agent.opensm.plugin_client import LoadAnswer
from sar_agent.opensm.plugin_install import ReadBackDiffers, put_in_force
from tests.worlds.fake_opensm import FakeBridge
from tests.worlds.small_plan import SMALL_TREE, small_plan


@pytest.fixture
def bridge(tmp_path: Path) -> FakeBridge:
    return FakeBridge(tmp_path, SMALL_TREE)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_plan()


@pytest.mark.parametrize("amended", [True, False])
def test_other_tables_that_came_into_force_meanwhile_are_noticed(
    bridge: FakeBridge, plan: Plan, monkeypatch: pytest.MonkeyPatch, amended: bool
) -> None:
    """A cable dies between the answer of the load and the agent's look: the plugin repairs, or
    another engine takes over."""
    load = bridge.load

    def overtaken(generation: int, proved_from: str | None = None) -> LoadAnswer:
        answer = load(generation, proved_from)
        if amended:
            bridge.repair(SMALL_TREE.with_links_down([0]))
        else:
            bridge.fall_back()
        return answer

    monkeypatch.setattr(bridge, "load", overtaken)
    with pytest.raises(ReadBackDiffers, match=r"entries differ|is now"):
        put_in_force(bridge, plan, bridge.folder / "routes.sar", None)
    assert not (bridge.folder / "routes.sar").exists()
