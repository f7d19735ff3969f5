"""The saved state, which a restart needs, and the history: one row a decision."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sar_agent.agent.history import CABLE, DECISION, History
from sar_agent.agent.job_days import JobDay, JobDays, Tables
from sar_agent.agent.state import SavedHold, StateStore
from sar_agent.agent.status import read_agent_status
from sar_agent.commands.ask import _line
from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError
from sar_agent.util import store as store_module
from tests.worlds.agent_world import ROW, STATE


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


def test_newest_first(tmp_path: Path) -> None:
    rows = [replace(ROW, at=float(i), generation=i) for i in range(5)]
    for row in rows:
        History(tmp_path).add(row)
    assert History(tmp_path).last(3) == rows[:1:-1]
    assert History(tmp_path).last(99) == rows[::-1]


def test_rows_of_cables_are_another_kind_and_old_rows_are_decisions(tmp_path: Path) -> None:
    cable, history = replace(ROW, at=5.0, kind=CABLE), History(tmp_path)
    history.add(ROW, cable)
    assert history.last(9) == [cable, ROW]
    assert (history.last(9, DECISION), history.last(9, CABLE)) == ([ROW], [cable])
    with sqlite3.connect(history.path) as base:
        base.execute("DELETE FROM decisions WHERE kind = 'cable'")
        base.execute("ALTER TABLE decisions DROP COLUMN kind")
        base.execute("UPDATE decisions SET checksum = NULL")
    assert History(tmp_path).last(9, DECISION) == [ROW] and History(tmp_path).last(9, CABLE) == []
    history.add(cable)
    assert history.last(9, DECISION) == [ROW] and history.last(9, CABLE) == [cable]


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").write_text("this is no data base, but longer than its header" * 9)
    with pytest.raises(SarError, match=r"history\.sqlite: file is not a database"):
        History(tmp_path).last(1)


@pytest.mark.parametrize("damage", ["overwritten", "cut off", "no database"])
@pytest.mark.parametrize("found", ["at the start", "by a decision"])
def test_a_damaged_file_is_moved_aside_and_said(
    damage: str, found: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The page once said for ever that the first pass had not ended yet."""
    damaged = History(tmp_path)
    damaged.add(*[replace(ROW, at=float(i), why="x" * 500) for i in range(100)])
    image = damaged.path.read_bytes()
    if damage == "no database":
        image = b"no database" * 999
    else:
        image = image[:5000] + b"\xa5" * (len(image) - 5000) * (damage == "overwritten")
    damaged.path.write_bytes(image)
    if found == "at the start":
        damaged.check()
    damaged.add(ROW)
    assert damaged.last(9) == [ROW]
    [aside] = tmp_path.glob("history.sqlite.broken-*")
    assert aside.read_bytes() == image
    assert caplog.text.count("is damaged") == 1 and aside.name in caplog.text
    damaged.check()
    assert damaged.last(9) == [ROW], "a sound one stays"


def test_a_number_that_is_too_large_is_a_gap(tmp_path: Path) -> None:
    with pytest.raises(SarError, match=r"history\.sqlite: .*too large"):
        History(tmp_path).add(replace(ROW, generation=2**63))
    History(tmp_path).add(ROW)
    assert History(tmp_path).last(9) == [ROW]


def test_the_state_of_a_later_release_keeps_its_hold(tmp_path: Path) -> None:
    held = STATE.model_copy(update={"hold": SavedHold()})
    store = StateStore(tmp_path)
    store.save(held)
    later = json.loads(store.path.read_text())
    later["hold"]["of_a_later_release"] = later["of_a_later_release"] = 1
    store.path.write_text(json.dumps(later))
    assert StateStore(tmp_path).load() == held


def test_a_state_that_cannot_be_used_is_moved_aside_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = StateStore(tmp_path)
    store.path.write_text("[1, 2]")
    assert store.load() is None and store.path.read_text() == "[1, 2]"
    for _ in range(2):
        store.save(STATE)
        assert store.load() == STATE
    [aside] = tmp_path.glob("state.json.broken-*")
    assert aside.read_text() == "[1, 2]"
    assert caplog.text.count(f"was moved to {aside.name}") == 1


def test_damaged_measures_are_no_measures(tmp_path: Path) -> None:
    """In rows of older releases, which have no checksum."""
    History(tmp_path).add(ROW)
    with sqlite3.connect(tmp_path / "history.sqlite") as base:
        base.execute("UPDATE decisions SET before = '{\"effective', checksum = NULL")
    assert History(tmp_path).last(1) == [replace(ROW, before=None)]


@pytest.mark.parametrize(
    "damage",
    [
        "why = CAST(X'68c36c' AS TEXT)",  # no UTF-8
        "at = 'soon'",
        "jobs = NULL",
        "seconds = X'00'",
        "generation = 1.5",
        "generation = generation + 64",
        "why = replace(why, 'jobs', 'jocs')",
        "before = replace(before, '4', '5')",
    ],
)
def test_a_damaged_row_is_left_out_and_said_once(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path)
    history.add(*[replace(ROW, at=float(i)) for i in range(3)])
    with sqlite3.connect(history.path) as base:
        base.execute(f"UPDATE decisions SET {damage} WHERE id = 2")
    for _ in range(2):
        assert [row.at for row in History(tmp_path).last(9)] == [2.0, 0.0]
    said = "1 row of decisions are damaged and left out"
    assert caplog.text.count(said) == 1
    history.add(ROW)
    assert history.last(1) == [ROW]
    config = Config.model_validate(
        {"agent": {"state_dir": str(tmp_path), "run_dir": str(tmp_path / "run")}}, strict=False
    )
    status = read_agent_status(config)
    assert f"history    {said}" in status.words() and status.json()["history_damage"] == said


def test_one_flipped_bit_breaks_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever it is, no row is told that was not written. What is missing is said, or the file is
    moved aside, or one sentence says why it cannot be read."""
    sound = tmp_path / "sound"
    sound.mkdir()
    written = [replace(ROW, at=float(i)) for i in range(20)]
    History(sound).add(*written)
    days = JobDays(sound)
    sums: dict[Tables, list[float]] = {"baseline": [1.0, 2.0, 2.0], "in_force": [1.0, 1.0, 1.0]}
    day = JobDay(1, "1", 1, True, leaf_count=2, hosts=4, leaves={"a": 4}, sums=sums)
    days.keep([replace(day, job=str(i)) for i in range(20)])
    image, random = (sound / "history.sqlite").read_bytes(), Random(1)
    for n in range(150):
        folder, data = tmp_path / str(n), bytearray(image)
        folder.mkdir()
        at = random.randrange(len(data))
        data[at] ^= 1 << random.randrange(8)
        (folder / "history.sqlite").write_bytes(data)
        history, days = History(folder), JobDays(folder)
        caplog.clear()
        history.check()
        with suppress(SarError):
            rows = history.last(99)
            assert all(row in written and _line(row) for row in rows)
            assert len(rows) == 20 or caplog.text.count("damaged") == 1
        with suppress(SarError):
            days.all()
        with suppress(SarError):
            days.saved()


def test_one_message_at_a_time_is_told() -> None:
    kept = {"dark_fiber_ratio": 0.25, "effective_efi_max": 6, "load_max": 1.5}
    new = kept | {"phase_contention_mean": 1.25}
    told = "one message at a time 1.50 → 1.25 times as long"
    line = _line(replace(ROW, before=new | {"phase_contention_mean": 1.5}, achieved=new))
    assert line.endswith(told), line
