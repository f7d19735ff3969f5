"""INSTALL ends by what is in force, and what keeps it from ending stops no repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from sar_agent.errors import InputError, SarError
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.formats.routes_file import read_generation, write_routes_file
from sar_agent.opensm.plugin_client import PluginStatus
from sar_agent.services.five_phase.coordinator import UncoveredSubscriber
from sar_agent.services.five_phase.messages import BeginUpdate, GiveUp, Phase, Subscribe, Tick
from sar_agent.util import store
from sar_lab.live.process import wait_until
from tests.worlds.fake_opensm import job
from tests.worlds.five_phase_agent import JOBS, Subscriber, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.once().result is Result.INSTALLED
    return world


def in_install(world: World, generation: int = 2) -> Subscriber:
    """A subscriber, and a run of an agent that stopped in INSTALL."""
    one, coordinator = Subscriber(world), world.agent.updates.coordinator
    coordinator.drive(BeginUpdate(generation, 0))
    one.notice("unpath", coordinator.state.update)
    coordinator.drive(Tick())
    assert world.phase is Phase.INSTALL
    return one


def say(world: World, **status: Any) -> Callable[[], None]:
    """The plugin says so, until what is returned is called."""
    told = world.bridge.status

    def other() -> PluginStatus:
        return told().model_copy(update=status)

    world.bridge.status = other  # type: ignore[method-assign]

    def again() -> None:
        world.bridge.status = told  # type: ignore[method-assign]

    return again


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.write_bytes

    def full(path: Path, data: bytes, mode: int) -> None:
        if path.name == "update.json":
            raise InputError("cannot be written (No space left on device)", file=path)
        real(path, data, mode)

    monkeypatch.setattr(store, "write_bytes", full)


def cut(world: World) -> None:
    fabric = world.fabric
    down = np.flatnonzero((fabric.channel_source == 0) & (fabric.channel_port == 5)).tolist()
    write_ibsim_net(fabric.with_links_down(down), world.net)
    world.bridge.topology_changes += 1


def kept(world: World) -> int:
    return read_generation(world.folder / "run/routes.sar")


@pytest.mark.parametrize("state", ["asked", "building", "sending"])
def test_nobody_is_called_back_while_opensm_is_still_at_it(world: World, state: str) -> None:
    """The plugin's deadline is over, its load is not."""
    one = Subscriber(world)
    told: list[Callable[[], None]] = []

    def late() -> None:
        told.append(say(world, state=state))
        raise SarError("nothing was installed within 60 s (OpenSM did not finish)")

    world.bridge.on_load.append(late)
    world.fewer_jobs()
    report = world.once()
    assert report.result is Result.FAILED and "within 60 s" in report.sentence
    assert (one.offset, world.phase) == (1, Phase.INSTALL)
    loads = len(world.bridge.loads)
    report = world.once()
    assert "OpenSM is still at work on the tables" in report.sentence
    assert (one.offset, world.phase) == (1, Phase.INSTALL)
    assert len(world.bridge.loads) == loads, "nothing is loaded into what is under way"
    told[0]()
    world.bridge.on_load.clear()
    for _ in range(3):
        world.once()
    assert (one.offset, world.phase) == (0, Phase.IDLE)
    assert kept(world) == world.bridge.generation


@pytest.mark.parametrize("in_force", [False, True])
def test_the_file_of_a_run_that_was_killed_is_finished_or_removed(
    world: World, in_force: bool
) -> None:
    """The agent was killed between the file and the load, or between the load and the reading."""
    one = in_install(world)
    new = replace(world.tables(), generation=2)
    write_routes_file(world.folder / "run/routes.next", new)
    if in_force:
        world.bridge.tables, world.bridge.generation = new, 2
    world.restart()
    world.agent.updates.end_unfinished()
    assert (one.offset, world.phase) == (0, Phase.IDLE)
    assert not (world.folder / "run/routes.next").exists()
    assert kept(world) == world.bridge.generation == (2 if in_force else 1)


def test_a_full_disk_in_install_stops_no_repair(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = in_install(world)
    with monkeypatch.context() as context:
        full_disk(context)
        cut(world)
        world.bridge.fall_back()
        for _ in range(3):
            world.once()
        assert world.bridge.engine == "sar"
        assert (one.offset, world.phase) == (1, Phase.INSTALL)
        unfinished = world.agent.updates.five_phase.end_run()
        assert "No space left" in unfinished.why and not unfinished.blocks
    world.once()
    assert (one.offset, world.phase) == (0, Phase.IDLE)


@pytest.mark.parametrize("phase", [Phase.UNPATH, Phase.REPATH])
def test_an_update_that_cannot_be_ended_is_reported(
    world: World, phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    Subscriber(world)
    coordinator = world.agent.updates.coordinator
    coordinator.drive(BeginUpdate(2, 0))
    if phase is Phase.REPATH:
        coordinator.drive(GiveUp("the test wants it"))
    with monkeypatch.context() as context:
        full_disk(context)
        assert "No space left" in world.agent.updates.five_phase.end_run().why
        assert world.phase is phase
    assert world.agent.updates.five_phase.end_run().why == ""
    assert world.phase is Phase.IDLE


def test_a_job_that_kept_three_updates_from_happening_keeps_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, deadline_seconds=0.2, lease_seconds=1)
    world.once()
    one, deaf = Subscriber(world), Subscriber(world, "00000000000000bb", "2")
    deaf.deaf = True
    world.source.records = (*JOBS, job("3", "n003", "n007", "n011"))
    for _ in range(3):
        report = world.once()
        assert report.result is Result.FAILED and "of jobs 2" in report.sentence
        world.agent.backoff.succeeded()
    assert "job 2 has kept 3 updates from happening" in caplog.text
    coordinator = world.agent.updates.coordinator
    with pytest.raises(UncoveredSubscriber):
        coordinator.hear(Subscribe(deaf.name, "2", None, 0, 0))
    left = coordinator.state.members.get(deaf.name)
    assert wait_until(lambda: not left or coordinator.clock() >= left.lease_until, 10)
    coordinator.hear(Subscribe(one.name, "1", None, 0, 0))
    report = world.once()
    assert report.result is Result.INSTALLED
    assert "packets of 2 other multi-switch jobs" in report.sentence
    world.source.records = tuple(one for one in world.source.records if one.id != "2")
    world.once()
    assert not coordinator.state.strikes, "its number may be another job's one day"


def test_stages_are_installed_one_by_one_while_all_are_away(world: World) -> None:
    """`whole` is for an administrator's window only."""
    one = Subscriber(world)
    world.fewer_jobs()
    during: list[int] = []
    world.bridge.on_load.append(lambda: during.append(one.offset))
    assert world.once().result is Result.INSTALLED
    assert world.agent.committer.decisions.history.last(1)[0].how == "five-phase"
    assert set(during) == {1}
