"""Time limits of the harness and of `demo-live` on a busy machine, without daemons."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sar_lab import demo_live
from sar_lab.demo_live import DemoLog, DemoStepFailed
from sar_lab.live import process
from sar_lab.live.process import wait_until
from tests.worlds.agent_world import ROW


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The load average, on two processors."""
    load = [0.1]
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(process, "PATIENCE", 1.0)
    return load


def played(story: DemoLog, after: int) -> DemoLog:
    """The agent's decision is there at the look after so many."""
    looks: list[object] = []

    def news() -> list[Any]:
        looks.append(None)
        return [ROW] if len(looks) > after else []

    story.agent = SimpleNamespace(news=news, log="the agent's last words")  # type: ignore[assignment]
    story.manager = SimpleNamespace(log=lambda: "OpenSM's")  # type: ignore[assignment]
    answer = SimpleNamespace(engine_in_force="sar", last_error="")
    story.bridge = SimpleNamespace(status=lambda: answer)  # type: ignore[assignment]
    return story


def test_a_limit_grows_with_the_load(load: list[float]) -> None:
    """One that has begun, too: the load rises while the machine is waited for."""
    calls: list[float] = []

    def true() -> bool:
        calls.append(time.monotonic())
        load[0] = 40.0
        return len(calls) > 12  # 0.6 s

    assert wait_until(true, 0.1)
    load[0], begin = 0.1, time.monotonic()
    assert not wait_until(lambda: False, 0.1)
    assert time.monotonic() - begin < 30


def test_the_limit_of_a_step_is_a_minute_at_least() -> None:
    assert demo_live.STEP_SECONDS >= 60


def test_a_failed_step_names_load_logs_and_remedy(
    load: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo_live, "STEP_SECONDS", 0.05)
    monkeypatch.setattr(demo_live, "PAUSE", 0.0)
    load[0] = 26.0
    assert played(DemoLog(), 5).expect("first routes", lambda row: True) == ROW
    with pytest.raises(DemoStepFailed) as failed:
        played(DemoLog(), 10**9).expect("first routes", lambda row: True)
    said = str(failed.value)
    assert said.startswith("first routes did not appear within 1 s (load average 26, 2 processors)")
    assert "SAR_PATIENCE=10 make demo-live" in said
    kept = re.search(r"the logs are in (\S+);", said)
    assert kept and (Path(kept[1]) / "agent.log").read_text() == "the agent's last words"
    assert (Path(kept[1]) / "opensm.log").read_text() == "OpenSM's"
