"""The coordinator among threads, and what it leaves on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sar_agent.agent.status import read_agent_status
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.messages import (
    BeginUpdate,
    Phase,
    Subscribe,
    Tick,
    Unsubscribe,
)
from sar_agent.services.five_phase.protocol import LeaseRules
from sar_agent.services.five_phase.storage import _read
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


def flipped(data: bytes) -> bytes:
    """Another letter of the subscriber's name, which is a name all the same."""
    return data.replace(NAME.encode(), NAME.replace("aa", "ab").encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"\xa5" * 999,
        lambda data: data + b"garbage",
        lambda data: b"{" + data,
        flipped,
    ],
)
def test_a_damaged_file_of_subscribers_is_said_and_kept_aside(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody of it is known, so that leases are waited for; a new file begins."""
    Coordinator(tmp_path, LeaseRules()).hear(Subscribe(NAME, "1", 1000, 0, 0))
    file = tmp_path / "subscribers.jsonl"
    file.write_bytes(image := damage(file.read_bytes()))
    coordinator = Coordinator(tmp_path, LeaseRules(lease=20))
    assert not coordinator.state.members
    assert coordinator.all_known_at > coordinator.clock() + 10
    [aside] = tmp_path.glob("subscribers.jsonl.broken-*")
    assert aside.read_bytes() == image and caplog.text.count("is damaged") == 1
    coordinator.hear(Subscribe(NAME, "1", 1000, 0, 0))
    assert set(Coordinator(tmp_path, LeaseRules()).state.members) == {NAME}
    config = Config.model_validate({"agent": {"state_dir": str(tmp_path)}}, strict=False)
    assert f"damaged    {aside.name}: renamed" in read_agent_status(config).words()


def test_every_flipped_bit_in_the_file_of_subscribers_is_seen(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, LeaseRules())
    for name in (NAME, NAME.replace("aa", "ab")):
        coordinator.hear(Subscribe(name, "1", 1000, 0, 0))
    image = (tmp_path / "subscribers.jsonl").read_bytes()
    assert len(_read(image)) == 2
    for at in range(len(image)):
        for bit in range(8):
            data = bytearray(image)
            data[at] ^= 1 << bit
            with pytest.raises(ValueError):
                _read(bytes(data))


def test_lines_of_older_releases_have_no_checksum(tmp_path: Path) -> None:
    """And the last line may be partial, or zeros after a power cut."""
    Coordinator(tmp_path, LeaseRules()).hear(Subscribe(NAME, "1", 1000, 0, 0))
    file = tmp_path / "subscribers.jsonl"
    old = f'{{"name": "{NAME}", "job": "1", "uid": 1000}}\n'
    for end in ("", "{", '{"name": "00', "\0" * 99):
        file.write_text(old + end)
        assert set(Coordinator(tmp_path, LeaseRules()).state.members) == {NAME}


@pytest.mark.parametrize("text", ["", "{", '{"phase": "lunch"}'])
def test_a_broken_file_is_none(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    Coordinator(tmp_path, LeaseRules()).hear(Subscribe(NAME, "1", None, 0, 0))
    (tmp_path / "update.json").write_text(text)
    coordinator = Coordinator(tmp_path, LeaseRules(lease=20))
    assert not coordinator.state.members
    assert coordinator.all_known_at > coordinator.clock() + 10
    assert "cannot be used" in caplog.text
