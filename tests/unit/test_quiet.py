"""When an agent makes passes: only where its OpenSM is the master."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.peer import PeerRecord, PeerStore
from sar_agent.agent.quiet import FIRST_TABLES_SECONDS, SILENT_SECONDS, Quiet
from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.telemetry.metrics import Metrics

MASTER = SmStatus(engine="sar", role="master")


@dataclass
class Manager:
    name: str = "OpenSM"
    now: SmStatus | None = MASTER

    def status(self) -> SmStatus:
        if self.now is None:
            raise Unavailable("it does not answer")
        return self.now


class Place:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **agent: Any) -> None:
        self.manager, self.clock = Manager(), 100.0
        words = {"state_dir": folder, "mode": "install", "metrics_address": ""} | agent
        config = Config.model_validate({"agent": words, "slurm": {"squeue": ["false"]}})
        monkeypatch.setattr("sar_agent.agent.quiet.load_subnet_manager", lambda _: self.manager)
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)
        self.metrics = Metrics("1", "install", "sar")
        self.quiet = Quiet(config, self.metrics)

    def value(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"sar_agent_{name}")

    def begins(self) -> bool:
        return self.quiet.may_begin(self.quiet.read())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch, peer=["ssh", "sm2"])


@pytest.mark.parametrize("role", ["standby", "not-active", "discovering"])
def test_beside_another_opensm_only_a_master_s_agent_makes_passes(place: Place, role: str) -> None:
    assert place.begins() and not place.quiet.must_end()
    place.manager.now = SmStatus(role=role)
    assert place.quiet.must_end() and not place.begins()


def test_an_opensm_that_is_silent_counts_as_gone_after_a_while(place: Place) -> None:
    assert place.begins()
    place.manager.now = None
    assert not place.quiet.must_end()
    place.clock += SILENT_SECONDS + 1
    assert place.quiet.must_end() and not place.begins()


def test_a_new_master_is_left_to_send_its_tables(place: Place) -> None:
    place.manager.now = SmStatus(role="master", state="at work")
    assert not place.begins()
    place.clock += FIRST_TABLES_SECONDS + 1
    assert place.begins(), "it takes long"


def test_the_only_opensm_is_waited_for_by_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say what is wrong; only one that another has is left alone."""
    place = Place(tmp_path, monkeypatch)
    for status in (None, SmStatus(role="discovering")):
        place.manager.now = status
        place.clock += 60
        assert place.begins() and not place.quiet.must_end()
    place.manager.now = SmStatus(role="standby")
    assert not place.begins() and place.quiet.must_end()


def test_an_observing_agent_is_never_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, mode="observe")
    place.manager.now = SmStatus(role="standby")
    assert place.begins() and not place.quiet.must_end()


def test_what_a_quiet_agent_shows(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    place.manager.now = SmStatus(role="standby", engine="sar", generation=7)
    place.quiet._polled = place.clock  # no squeue here
    told: list[str] = []

    def stopped(_: float) -> bool:
        if len(told) == 1:
            assert (place.value("standby"), place.value("install_mode")) == (1, 0)
            assert place.value("generation_in_force") == 7
        if len(told) == 3:
            place.manager.now = MASTER
        return False

    place.quiet.wait(told.append, stopped)
    assert told == ["OpenSM is standby; this agent installs nothing"] * 3
    assert caplog.text.count("installs nothing") == 1 and "passes begin" in caplog.text
    assert (place.value("standby"), place.value("install_mode")) == (0, 1)
    assert place.value("standby_configured") == 1
    PeerStore(place.quiet.config.agent.state_dir).write(PeerRecord(same_at=5.0))
    place.quiet.must_end()
    assert place.value("peer_copied_timestamp_seconds") == 5.0


def test_the_next_plan_is_above_what_the_other_machine_has_had(tmp_path: Path) -> None:
    from tests.worlds.agent_world import JOBS, World

    world = World(tmp_path)
    world.source.records = JOBS
    world.once()
    assert world.bridge.generation == 1
    PeerStore(world.agent.config.agent.state_dir).write(PeerRecord(generation=6))
    report = world.once()
    assert "the other machine's agent has had generation 6" in report.sentence
    assert world.bridge.generation == 7
    world.once()
    assert world.bridge.generation == 7, "once"
