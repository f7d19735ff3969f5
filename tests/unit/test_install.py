"""Routes put in force, and believed only when read back."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import (
    RoutesFile,
    encode,
    read_generation,
    read_routes_file,
    write_routes_file,
)
from sar_agent.install.changes import differences
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import NotYet
from sar_agent.jobs import JobMix
from sar_agent.opensm import plugin_install as install_module
from sar_agent.opensm.plugin_client import LoadAnswer, PluginRefused
from sar_agent.opensm.plugin_install import (
    ReadBackDiffers,
    finish_or_restore,
    next_path,
    put_in_force,
    read_in_force,
)
from sar_agent.routing import Options, load_engine
from tests.worlds.fake_opensm import FakeBridge, State
from tests.worlds.routes_vectors import small_routes
from tests.worlds.small_plan import SMALL_TREE, small_plan


@pytest.fixture
def bridge(tmp_path: Path) -> FakeBridge:
    return FakeBridge(tmp_path, SMALL_TREE)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_plan()


@pytest.fixture(scope="module")
def file(plan: Plan) -> RoutesFile:
    return plan.routes_file


def test_the_tables_read_back_are_returned(bridge: FakeBridge, plan: Plan) -> None:
    path = bridge.folder / "routes.sar"
    found = put_in_force(bridge, plan, path, bridge.digest)
    assert differences(plan.routes_file, found.file) == 0 and bridge.generation == 5
    assert found.confirmed and found.digest == bridge.digest and found.generation == 5
    assert read_generation(path) == 5 and not next_path(path).exists()


def test_nobody_can_write_to_what_was_proved(plan: Plan) -> None:
    mix = JobMix.of([])
    routes = load_engine("dfsssp").route(SMALL_TREE, mix, Options())
    made = make_plan(6, SMALL_TREE, mix, routes)
    routes.egress[:] = 0
    assert made.routes.entries_changed(plan.routes) == 0
    with pytest.raises(ValueError, match="read-only"):
        made.routes.egress[0, 0, 0] = 0


@pytest.mark.parametrize("state", ["starting", "asked", "building", "sending"])
def test_nothing_is_written_while_opensm_is_at_work(
    bridge: FakeBridge, plan: Plan, state: State
) -> None:
    path = bridge.folder / "routes.sar"
    bridge.state = state
    with pytest.raises(NotYet, match=rf"still at work on the tables \({state}\)"):
        put_in_force(bridge, plan, path, None)
    with pytest.raises(NotYet, match="still at work"):
        read_in_force(bridge, SMALL_TREE, patience=0)
    assert bridge.loads == [] and not next_path(path).exists()


def test_a_switch_that_did_not_confirm_is_known_as_that(bridge: FakeBridge, plan: Plan) -> None:
    """It is not taken for a switch without routes."""
    path, old = bridge.folder / "routes.sar", read_in_force(bridge, SMALL_TREE)
    assert old.confirmed and old.had is None
    bridge.deaf = (0,)
    with pytest.raises(PluginRefused, match="have not confirmed"):
        put_in_force(bridge, plan, path, None)
    now = read_in_force(bridge, SMALL_TREE)
    assert not now.confirmed and now.had is not None
    assert (now.routes.egress == plan.routes.egress).all(), "what was sent"
    assert (now.had[:, :, 0] == old.routes.egress[:, :, 0]).all(), "what it may have"
    assert (now.had[:, :, 1:] == plan.routes.egress[:, :, 1:]).all()
    assert not path.exists(), "nothing is kept for a restart that is not confirmed"
    with pytest.raises(NotYet, match="generation 5 was sent, but 1 switch has not confirmed"):
        finish_or_restore(bridge, path)
    assert next_path(path).exists()
    bridge.confirm()
    assert "generation 5 is in force and confirmed" in finish_or_restore(bridge, path)
    assert read_generation(path) == 5 and not next_path(path).exists()
    assert finish_or_restore(bridge, path) == ""


def test_a_load_past_its_deadline_is_still_under_way(bridge: FakeBridge, plan: Plan) -> None:
    """The file is neither taken back nor written again before OpenSM is done."""
    path = bridge.folder / "routes.sar"
    put_in_force(bridge, plan, path, None)

    def late() -> None:
        bridge.state = "sending"

    bridge.refuse, bridge.on_refusal = [("deadline", "not done within 60 s (test)")], [late]
    later = replace(plan, generation=6)
    with pytest.raises(PluginRefused, match="60 s"):
        put_in_force(bridge, later, path, None)
    for _ in range(2):
        with pytest.raises(NotYet):
            finish_or_restore(bridge, path)
        with pytest.raises(NotYet):
            put_in_force(bridge, replace(plan, generation=7), path, None)
    assert read_generation(next_path(path)) == 6 and read_generation(path) == 5
    bridge._send(later.routes_file)
    bridge.state = "built"
    assert "generation 6 is in force" in finish_or_restore(bridge, path)
    assert read_generation(path) == 6


@pytest.mark.parametrize("content", [b"", b"SARROUTE", None])
def test_routes_that_did_not_come_into_force_are_removed(
    bridge: FakeBridge, plan: Plan, content: bytes | None
) -> None:
    path = bridge.folder / "routes.sar"
    put_in_force(bridge, plan, path, None)
    good = path.read_bytes()
    if content is None:
        write_routes_file(next_path(path), replace(plan.routes_file, generation=6))
    else:
        next_path(path).write_bytes(content)
    assert "removed" in finish_or_restore(bridge, path)
    assert path.read_bytes() == good and not next_path(path).exists()


def test_the_same_number_is_not_the_same_routes(bridge: FakeBridge, plan: Plan) -> None:
    """A generation that another process has put in force since."""
    path = bridge.folder / "routes.sar"
    put_in_force(bridge, plan, path, None)
    good, file = path.read_bytes(), plan.routes_file
    other = load_engine("updn").route(SMALL_TREE, JobMix.of([]), Options())
    assert (other.egress != plan.routes.egress).any()
    write_routes_file(next_path(path), routes_to_file(SMALL_TREE, other, file.generation))
    assert "removed" in finish_or_restore(bridge, path)
    assert path.read_bytes() == good


POINTS = ("write", "written", "load", "loaded", "read", "read back", "rename", "renamed")
DEAF = [(point, False) for point in POINTS] + [(point, True) for point in POINTS[:4]]
"""A load that is not confirmed raises, so nothing follows it."""


class Outlives(FakeBridge):
    """Switches that are there after the agent is killed: what they have is on the disk."""

    def load(self, generation: int, proved_from: str | None = None) -> LoadAnswer:
        try:
            return super().load(generation, proved_from)
        finally:
            if self.tables:
                write_routes_file(self.folder / "switches", self.tables)

    def remember(self) -> None:
        if (self.folder / "switches").exists():
            self.tables = read_routes_file(self.folder / "switches")
            self.engine, self.generation = "sar", self.tables.generation


def killed_at(point: str, bridge: Outlives, plan: Plan, path: Path) -> None:
    """A process of its own puts `plan` in force and is killed."""
    pid = os.fork()
    if pid:
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        return

    def around(function: Any, before: str, after: str) -> Any:
        def called(*args: Any) -> Any:
            if point == before:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return function(*args)
            finally:
                if point == after:
                    os.kill(os.getpid(), signal.SIGKILL)

        return called

    try:
        module = install_module
        module.write_bytes = around(module.write_bytes, "write", "written")
        module._read_back = around(module._read_back, "read", "read back")
        module._rename = around(module._rename, "rename", "renamed")
        bridge.load = around(bridge.load, "load", "loaded")  # type: ignore[method-assign]
        put_in_force(bridge, plan, path, bridge.digest)
    finally:
        os._exit(1)


@pytest.mark.parametrize("restarts", ["agent", "OpenSM"])
@pytest.mark.parametrize(("point", "deaf"), DEAF)
def test_kill_9_leaves_the_old_routes_or_confirmed_ones(
    tmp_path: Path, plan: Plan, point: str, deaf: bool, restarts: str
) -> None:
    """The agent is killed at each point between writing and confirming. `deaf`:
    a switch does not confirm; `restarts`: who comes first."""
    bridge, path = Outlives(tmp_path, SMALL_TREE), tmp_path / "routes.sar"
    old = load_engine("updn").route(SMALL_TREE, JobMix.of([]), Options())
    put_in_force(bridge, make_plan(4, SMALL_TREE, plan.mix, old), path, None)
    before = bridge.digest
    bridge.deaf = (0,) if deaf else ()
    killed_at(point, bridge, plan, path)
    bridge.remember()
    unconfirmed = bridge.tables.had is not None  # type: ignore[union-attr]
    assert unconfirmed is (deaf and bridge.generation == 5)
    kept = read_generation(path)
    assert kept == (5 if point == "renamed" else 4)
    if restarts == "OpenSM":
        bridge.deaf = ()
        bridge.start_again()
        assert bridge.generation == kept, "what it takes by itself was confirmed once"
    if unconfirmed and restarts == "agent":
        with pytest.raises(NotYet, match="not confirmed"):
            finish_or_restore(bridge, path)
        assert read_generation(path) == 4
        bridge.confirm()
    finish_or_restore(bridge, path)
    assert not next_path(path).exists()
    assert read_generation(path) == bridge.generation, "no later start installs anything else"
    assert bridge.generation == 5 or bridge.digest == before


def test_another_table_than_planned(bridge: FakeBridge, plan: Plan) -> None:
    bridge.spoil = True
    with pytest.raises(ReadBackDiffers, match="1 entry differs"):
        put_in_force(bridge, plan, bridge.folder / "routes.sar", None)
    assert not (bridge.folder / "routes.sar").exists()


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


def test_service_levels_count() -> None:
    lanes = small_routes(lanes=2)
    assert lanes.service_levels is not None
    assert differences(lanes, lanes) == 0
    other = ((lanes.service_levels + 1) % 16).astype(np.uint8)
    wrong = differences(lanes, replace(lanes, service_levels=other))
    assert wrong == (lanes.forwarding != 0).sum(), "all but those from a switch to itself"
    assert differences(lanes, replace(lanes, service_levels=None)) == lanes.forwarding.size


def test_generations_keep_the_newest(tmp_path: Path, file: RoutesFile) -> None:
    kept = Generations(tmp_path, 3)
    assert kept.numbers() == []
    for generation in (8, 9, 10, 11):
        kept.add(generation, encode(replace(file, generation=generation)))
    assert kept.numbers() == [9, 10, 11]
    assert kept.read(10).generation == 10
    with pytest.raises(InputError, match=r"8\.sar"):
        kept.read(8)
