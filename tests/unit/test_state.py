"""The saved state, which a restart needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.agent.state import SavedHold, StateStore
from sar_agent.errors import InputError
from sar_agent.util import store as store_module
from tests.worlds.agent_world import STATE


def test_there_and_back(tmp_path: Path) -> None:
    held = STATE.model_copy(update={"hold": SavedHold(until=9.0)})
    for state in (STATE, held):
        StateStore(tmp_path).save(state)
        assert StateStore(tmp_path).load() == state
    assert held.hold and held.hold.over_at == 9.0 and STATE.hold is None
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"], "no temporary is left"


def test_a_disk_that_does_not_take_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = StateStore(tmp_path / "none")
    for generation in (8, 9):
        store.save(STATE.model_copy(update={"generation": generation}))
        assert (loaded := store.load()) is not None and loaded.generation == generation
    assert caplog.text.count("kept in memory") == 1
    store.path.parent.mkdir()
    store.save(STATE)
    assert StateStore(tmp_path / "none").load() == STATE


def test_a_reserved_state_needs_no_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StateStore(tmp_path)
    store.save(STATE)
    store.reserve(STATE)
    monkeypatch.setattr(store_module, "write_bytes", full_disk)
    later = STATE.model_copy(update={"generation": 10**9, "installed_at": 1.25e9})
    store.save(later)
    store.release()
    assert StateStore(tmp_path).load() == later
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
    with pytest.raises(InputError, match="No space left"):
        store.reserve(STATE)
    assert StateStore(tmp_path).load() == later


def full_disk(path: Path, *rest: object) -> None:
    raise InputError("cannot be written (No space left on device)", file=path)
