"""The plugin compares what is in force with the file that it loaded, so that nothing is dumped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_agent.install.changes import differences
from sar_agent.install.plan import Plan
from sar_agent.opensm.plugin_client import DumpAnswer, LoadAnswer
from sar_agent.opensm.plugin_install import put_in_force, read_in_force
from tests.worlds.fake_opensm import FakeBridge
from tests.worlds.small_plan import SMALL_TREE, small_plan


@pytest.fixture
def bridge(tmp_path: Path) -> FakeBridge:
    return FakeBridge(tmp_path, SMALL_TREE)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_plan()


def without_dumps(bridge: FakeBridge, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The dumps that the plugin was asked for from now on."""
    dumps: list[int] = []
    dump = bridge.dump

    def counted() -> DumpAnswer:
        dumps.append(1)
        return dump()

    monkeypatch.setattr(bridge, "dump", counted)
    return dumps


def test_tables_that_the_plugin_compared_are_not_dumped(
    bridge: FakeBridge, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways the same tables are read back, and the next load is proved from the same digest."""
    dumps = without_dumps(bridge, monkeypatch)
    found = put_in_force(bridge, plan, bridge.folder / "routes.sar", None)
    assert not dumps and found.confirmed
    dumped = read_in_force(bridge, SMALL_TREE)
    assert found.digest == dumped.digest and found.routes.same_tables(dumped.routes)
    assert found.identity == dumped.identity and not differences(found.file, dumped.file)
    bridge.compares = False
    again = put_in_force(bridge, replace(plan, generation=6), bridge.folder / "routes.sar", None)
    assert len(dumps) == 2 and again.routes.same_tables(found.routes)


@pytest.mark.parametrize(
    "other",
    [
        {"as_loaded": False},  # a dump would have other bytes
        {"payload_crc": 1},  # the plugin has read another file
        {"routing": 1},  # OpenSM has routed since
    ],
)
def test_the_tables_are_dumped_where_the_comparison_does_not_serve(
    bridge: FakeBridge, plan: Plan, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    dumps, load = without_dumps(bridge, monkeypatch), bridge.load

    def answered(generation: int, proved_from: str | None = None) -> LoadAnswer:
        return load(generation, proved_from).model_copy(update=other)

    monkeypatch.setattr(bridge, "load", answered)
    assert put_in_force(bridge, plan, bridge.folder / "routes.sar", None).confirmed
    assert len(dumps) == 1
