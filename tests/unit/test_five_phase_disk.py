"""The coordinator among threads, and what it leaves on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import SarError
from sar_agent.five_phase.coordinator import Coordinator
from sar_agent.five_phase.messages import (
    BeginUpdate,
    Phase,
    Subscribe,
    Tick,
    Unsubscribe,
)
from sar_agent.five_phase.protocol import LeaseRules
from sar_agent.util import store

NAME, GOOD = "00000000000000aa", "a" * 16


def test_each_step_is_on_the_disk_before_it_is_heard_of(tmp_path: Path) -> None:
    first = Coordinator(tmp_path, LeaseRules(deadline=5))
    first.hear(Subscribe(NAME, "1", 1000, 0, 0))
    assert set(Coordinator(tmp_path, LeaseRules()).state.members) == {NAME}
    first.drive(BeginUpdate(3, 0))
    again = Coordinator(tmp_path, LeaseRules())
    assert (again.state.phase, again.state.update) == (Phase.REPATH, first.state.update)
    first.hear(Unsubscribe(NAME))
    assert not Coordinator(tmp_path, LeaseRules()).state.members
    first.drive(Tick())
    again = Coordinator(tmp_path, LeaseRules())
    assert (again.state.phase, again.state.generation) == (Phase.INSTALL, 3)


def test_a_full_disk_makes_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator(tmp_path, LeaseRules())
    coordinator.hear(Subscribe(NAME, "1", None, 0, 0))

    def full(path: Path, data: bytes, mode: int) -> None:
        raise SarError("no space")

    monkeypatch.setattr(store, "write_bytes", full)
    with pytest.raises(SarError):
        coordinator.drive(BeginUpdate(3, 0))
    assert coordinator.state.phase is Phase.IDLE


@pytest.mark.parametrize("text", ["", "{", '{"phase": "lunch"}'])
def test_a_broken_file_is_none(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    Coordinator(tmp_path, LeaseRules()).hear(Subscribe(NAME, "1", None, 0, 0))
    (tmp_path / "update.json").write_text(text)
    coordinator = Coordinator(tmp_path, LeaseRules(lease=20))
    assert not coordinator.state.members
    assert coordinator.all_known_at > coordinator.clock() + 10
    assert "cannot be used" in caplog.text
