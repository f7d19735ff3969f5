"""Tables that OpenSM's dump told: the page, status, metric and log say when they may be old."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.outcome import Result
from sar_agent.agent.status import read_agent_status
from sar_agent.commands.status_check import MonitoringCode, judge_status
from sar_agent.formats.export import export_routes
from sar_agent.jobs import JobMix
from sar_agent.opensm import dump_age
from sar_agent.opensm.dump_age import opensm_started, outdated
from sar_agent.routing import Options, load_engine
from sar_agent.services.live_page.web_app import WebApp
from tests.worlds.agent_world import World
from tests.worlds.live_page import ask

DAY = 86400.0


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When OpenSM was started: the machine of the tests may run some."""
    at = [time.time() - 100 * DAY]
    monkeypatch.setattr(dump_age, "opensm_started", lambda: at[0])
    return at


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Observes without the plugin, beside a dump of the tables."""
    world = World(tmp_path, mode="observe")
    world.bridge.away = True
    routes = load_engine("minhop").route(world.fabric, JobMix.of([]), Options())
    export_routes(tmp_path, world.fabric, routes, ["lfts"])
    opensm = world.agent.config.opensm.model_copy(update={"lfts_dump": str(tmp_path / "lfts.dump")})
    config = world.agent.config.model_copy(update={"opensm": opensm})
    manager = world.bridge.manager
    manager.lfts_dump = tmp_path / "lfts.dump"
    world.agent = build_agent(config, manager, world.source)
    return world


def written(world: World, days: float) -> None:
    """The dump is of so many days ago."""
    at = time.time() - days * DAY
    os.utime(world.folder / "lfts.dump", (at, at))


def said(world: World) -> str:
    """What the page says of the dump, and the metrics agree."""
    wrong = json.loads(ask(WebApp(world.agent.observers["page"].pages, "loopback"),
                           "/api/state.json")[2])["wrong"]  # fmt: skip
    status = read_agent_status(world.agent.config, world.agent.manager)
    assert status.dump_written_at == world.value("sar_agent_dump_timestamp_seconds")
    sentences = [one["sentence"] for one in wrong if "lfts.dump" in one["sentence"]]
    assert world.value("sar_agent_dump_outdated") == len(sentences)
    return sentences[0] if sentences else ""


def test_a_dump_of_today_is_right(world: World) -> None:
    assert world.once().result is Result.PLANNED
    assert not said(world)
    written(world, 6)
    world.once()
    assert not said(world), "nothing need have changed"
    status = read_agent_status(world.agent.config, world.agent.manager)
    assert "\ndump       " in status.words() and ", 6 days ago" in status.words()


def test_a_dump_of_another_month_is_said(world: World, caplog: pytest.LogCaptureFixture) -> None:
    written(world, 40)
    for _ in range(3):
        world.once()
    sentence = said(world)
    assert "lfts.dump: the tables are of " in sentence and ", 40 days ago" in sentence
    assert "log_flags have 0x40" in sentence and "SIGHUP" in sentence
    assert caplog.text.count("40 days ago") == 1
    status = read_agent_status(world.agent.config, world.agent.manager)
    assert sentence in status.words() and status.json()["dump_outdated"] == sentence
    running = status.__class__(**{**status.__dict__, "running": "process 1"})
    assert judge_status(running) == (MonitoringCode.WARNING, sentence)
    (world.folder / "lfts.dump").touch()
    world.once()
    assert not said(world)


def test_opensm_has_restarted_without_the_flag(world: World, started: list[float]) -> None:
    """The dump is of an hour ago, and nobody wrote it since OpenSM's start."""
    written(world, 1 / 24)
    started[0] = time.time() - 60
    world.once()
    assert not said(world), "OpenSM may still sweep"
    started[0] = time.time() - 1800
    world.once()
    assert "and OpenSM has started since, on " in said(world)


def test_the_fabric_has_changed_since(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.once()
    world.cut()
    assert world.agent.observer.refresh_fabric()
    world.once()
    assert not said(world), "OpenSM may still sweep"
    monkeypatch.setattr(dump_age, "SWEEP_SECONDS", -1.0)
    world.once()
    written(world, 0.01)
    world.once()
    assert "and the fabric has changed since; " in said(world)
    (world.folder / "lfts.dump").touch()
    world.once()
    assert not said(world)


def test_what_the_agent_wrote_is_not_too_old() -> None:
    at = time.time() - 40 * DAY
    assert outdated("dump", at) and not outdated("dump", at, ours=True)
    assert outdated("dump", at, at + 1, ours=True)


def test_the_start_of_a_process_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process, as if it were an OpenSM with an odd name."""
    (tmp_path / "12").mkdir()
    (tmp_path / "self").mkdir()
    own = Path("/proc/self/stat").read_text()
    (tmp_path / "12/comm").write_text("opensm) (x\n")
    (tmp_path / "12/stat").write_text("12 (opensm) (x)" + own[own.rindex(")") + 1 :])
    monkeypatch.setattr(dump_age, "PROCESSES", tmp_path)
    at = opensm_started()
    assert 0 <= time.time() - at < 86400 and at == pytest.approx(opensm_started(), abs=0.1)
    (tmp_path / "12/comm").write_text("bash\n")
    assert opensm_started() == 0.0
