"""A person's rollback: one commit path with passes, and a hold that outlives the process."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sar_agent.agent.build import build_site
from sar_agent.agent.outcome import Result
from sar_agent.agent.restore import restore_routes
from sar_agent.agent.rollback import resume, rollback
from sar_agent.agent.status import read_agent_status
from sar_agent.commands import service
from sar_agent.commands.status_check import judge_status
from sar_agent.errors import InputError, SarError
from sar_agent.install import generations
from sar_agent.services.live_page.web_app import WebApp
from sar_agent.util import store as store_module
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import job
from tests.worlds.live_page import ask


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Generation 2 is in force, for one of two jobs."""
    world = World(tmp_path)
    world.once()
    world.source.records = JOBS[:1]
    assert world.once().result is Result.INSTALLED
    return world


def roll_back(world: World, generation: int | None = 1, hold: float | None = None) -> str:
    config = world.agent.config
    return rollback(
        config, generation, hold, build_site(config, world.bridge.manager, world.source)
    )


def full_disk(path: Path, *rest: object) -> None:
    raise InputError("cannot be written (No space left on device)", file=path)


def test_an_older_generation_comes_into_force_and_is_held(world: World) -> None:
    old = world.agent.installed.generations.read(1)
    assert "generation 1 are in force again as generation 3" in roll_back(world)
    tables = world.bridge.tables
    assert tables is not None and (tables.forwarding == old.forwarding).all()
    assert world.agent.installed.generations.numbers() == [1, 2, 3]
    assert world.restart().pass_once().result is Result.NOTHING
    world.source.records = JOBS
    assert world.once().result is Result.HELD, "other jobs do not end the hold"
    assert world.value("sar_agent_rollback_hold") == 1
    assert resume(world.agent.config).startswith("generation 3 is no longer held")
    assert resume(world.agent.config) == "nothing is held"
    assert world.once().result is Result.INSTALLED
    world.once()
    assert world.value("sar_agent_rollback_hold") == 0


def shown_held(world: World) -> set[bool]:
    """What status, its check, the page and the metric say; one value where they agree."""
    status = read_agent_status(world.agent.config, world.bridge.manager)
    app = WebApp(world.agent.observers["page"].pages, "loopback")
    return {
        "\nheld " in status.words(),
        status.json()["wanted"]["hold"] is not None,
        "held by a rollback" in judge_status(replace(status, running="process 1"))[1],
        json.loads(ask(app, "/api/state.json")[2])["in_force"]["held"],
        world.value("sar_agent_rollback_hold") == 1,
    }


@pytest.mark.parametrize("resumed", [False, True])
def test_a_hold_that_is_over_is_nowhere_shown(
    world: World, monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    """Nothing new is installed when it is over, so the state on disk still has it."""
    world.source.records = ()
    world.once()
    world.once()
    roll_back(world, hold=60)
    world.once()
    assert shown_held(world) == {True}
    if resumed:
        assert resume(world.agent.config).startswith("generation")
    else:
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        monkeypatch.setattr(time, "clock_gettime", lambda clock: boot + 3601)
    assert world.once().result is Result.NOTHING
    assert shown_held(world) == {False}
    assert resume(world.agent.config) == "nothing is held"
    world.source.records = JOBS
    report = world.once()
    assert report.result is Result.INSTALLED
    assert report.sentence.startswith("the hold is over, and 2 multi-switch jobs run; ")


def test_the_history_tells_of_it_as_of_a_pass(world: World) -> None:
    roll_back(world)
    row = world.agent.committer.decisions.history.last(1)[0]
    assert (row.reason, row.result, row.generation) == ("rollback", "installed", 3)
    assert row.how in ("direct", "staged") and row.before and row.predicted == row.achieved
    assert row.who != "agent" and "held until `sar-agent resume`" in row.why
    plan = world.agent.current.last
    assert plan is not None and row.predicted
    planned = world.agent.committer.decisions.history.last(2)[1].predicted
    assert planned and planned["phase_contention_mean"] == plan.measures.phase_contention_mean
    assert planned["phase_contention_max"] == plan.measures.phase_contention_max


class Killed(BaseException):
    """What no handler catches."""


@pytest.mark.parametrize("after", [True, False])
def test_killed_before_its_hold_is_saved_it_is_held_if_its_tables_came_into_force(
    world: World, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """The next pass installed the agent's own tables over it."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as kill:
        # A process that is killed releases nothing.
        kill.setattr(store_module.JsonStore, "release", lambda _: None)
        target = "sar_agent.agent.commit.Committer.record"
        kill.setattr(target if after else "sar_agent.install.transit.Transit.install", die)
        with pytest.raises(Killed):
            roll_back(world)
    assert world.bridge.loads == ([1, 2, 3] if after else [1, 2])
    tables, room = world.bridge.tables, world.folder / "state" / "state.room"
    assert room.exists()
    world.restart()
    world.source.records = JOBS
    assert world.once().result is (Result.HELD if after else Result.INSTALLED)
    assert (world.bridge.tables is tables) is after
    assert not room.exists()
    if after:
        assert shown_held(world) == {True}
        assert resume(world.agent.config).startswith("generation 3 is no longer held")
        assert world.once().result is Result.INSTALLED


def test_a_full_state_disk_refuses_it_while_nothing_has_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to install, fail to save its hold, and be undone by the next pass."""
    with monkeypatch.context() as disk:
        disk.setattr(store_module, "write_bytes", full_disk)
        with pytest.raises(InputError, match="No space left"):
            roll_back(world)
    assert world.bridge.loads == [1, 2] and world.bridge.generation == 2
    assert world.restart().pass_once().result is Result.NOTHING


def test_a_disk_that_fills_up_meanwhile_does_not_undo_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for the state is made before; generation and history are less important."""

    def fill() -> None:
        monkeypatch.setattr(store_module, "write_bytes", full_disk)
        monkeypatch.setattr(generations, "write_bytes", full_disk)

    world.bridge.on_load = [fill]
    roll_back(world, hold=60)
    monkeypatch.undo()
    world.bridge.on_load = []
    assert world.bridge.generation == 3
    assert world.agent.installed.generations.numbers() == [1, 2]
    world.source.records = JOBS
    assert world.restart().pass_once().result is Result.HELD


def test_a_refused_rollback_changes_nothing(world: World) -> None:
    world.bridge.refuse = ["no (test)"]
    with pytest.raises(SarError, match=r"no \(test\)"):
        roll_back(world)
    assert sorted(path.name for path in (world.folder / "state").glob("state.*")) == ["state.json"]
    assert world.restart().pass_once().result is Result.NOTHING


def test_without_a_number_it_is_the_generation_before_the_last(world: World) -> None:
    assert "the tables of generation 1 are in force again" in roll_back(world, None)


def test_the_only_generation_has_none_before_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.once()
    with pytest.raises(InputError, match=r"no generation before the last; .*kept are: 1"):
        roll_back(world, None)


MANY = job("3", "n003", "n007", "n010", "n013", "n004", "n008", "n011", "n014")
SIX = job("4", "n001", "n005", "n009", "n013", "n002", "n006")


@pytest.fixture
def three(tmp_path: Path) -> World:
    """Generation 3 of three is in force; the tables of each are others."""
    world = World(tmp_path)
    for jobs in (JOBS, (*JOBS, MANY), (SIX,)):
        world.source.records = jobs
        assert world.once().result is Result.INSTALLED
    images = [world.agent.installed.generations.read(n).forwarding.tobytes() for n in (1, 2, 3)]
    assert len({*images}) == 3
    return world


def test_typed_again_it_goes_further_back_and_never_to_what_it_left(three: World) -> None:
    assert "the tables of generation 2 " in roll_back(three, None, hold=0)  # over at once
    assert "the tables of generation 1 " in roll_back(three, None)
    none = r"before generation 1, whose tables generation 5 has; --to names one; kept are: 1, 2, 3,"
    with pytest.raises(InputError, match=none):
        roll_back(three, None)
    assert "the tables of generation 3 " in roll_back(three, 3)
    assert "the tables of generation 2 " in roll_back(three, None)


def test_under_the_hold_of_other_tables_it_asks_for_a_number(three: World) -> None:
    """After `leave`, or a rollback to a generation that is not kept any more."""
    roll_back(three, 1)
    three.agent.installed.generations.path(1).unlink()
    asked = r"generation 4 was put in force by hand, .*name one with --to; kept are: 2, 3, 4"
    with pytest.raises(InputError, match=asked):
        roll_back(three, None)
    assert three.bridge.generation == 4


def test_a_generation_that_is_not_kept(world: World) -> None:
    with pytest.raises(InputError, match="generation 9 is not kept"):
        roll_back(world, 9)


def test_a_reboot_restores_them_where_there_is_no_other_machine(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fetch-state` after the folder of the archive was deleted."""
    monkeypatch.setattr(service, "for_writing", lambda *_: world.agent.config)
    monkeypatch.setitem(sys.modules, "sar_agent.services.archive", None)
    monkeypatch.delitem(sys.modules, "sar_agent.services.archive.exchange", raising=False)
    service.fetch_state()
    assert "begins with generation 2" in capsys.readouterr().out


def test_a_reboot_restores_the_newest_generation_that_can_be_read(world: World) -> None:
    config, path = world.agent.config, world.folder / "run/routes.sar"
    assert "begins with generation 2, which is in " in restore_routes(config)
    kept = world.agent.installed.generations
    for broken in (0, 1):
        path.unlink()
        said = restore_routes(config)
        assert said.startswith(f"OpenSM begins with generation {2 - broken}, which was kept")
        assert path.read_bytes() == kept.path(2 - broken).read_bytes()
        assert ("2.sar: " in said) == bool(broken)
        kept.path(2).write_bytes(b"")
    kept.path(1).unlink()
    path.write_bytes(b"cut")
    with pytest.raises(
        SarError, match=r"no generation is kept: OpenSM begins with its own engines"
    ):
        restore_routes(config)
