"""What earlier releases have written is read by this one, and goes on from there.

`tests/worlds/releases/` has a folder for each, made by its own code: a fabric, settings with every
key of that time, and the state of an agent that installed three plans and then was rolled back by
hand. A release adds a folder here, and deletes none.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.build import build_site
from sar_agent.agent.history import History, Row
from sar_agent.agent.job_days import JobDay, JobDays
from sar_agent.agent.outcome import Result
from sar_agent.agent.rollback import resume, rollback
from sar_agent.config.gone_keys import GONE, gone_keys
from sar_agent.config.model import ConfigError, load_config, parse_config
from sar_agent.util.sqlite_file import HISTORY, SqliteTable
from tests.worlds.agent_world import JOBS, ROW, World
from tests.worlds.fake_opensm import job

RELEASES = sorted((Path(__file__).parents[1] / "worlds/releases").iterdir())
MANY = job("3", "n003", "n007", "n010", "n013", "n004", "n008", "n011", "n014")


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the folder of a release."""
    shutil.copytree(request.param, tmp_path / "release")
    return tmp_path / "release"


def test_settings_are_read(release: Path) -> None:
    settings = load_config(release / "sar-agent.toml")
    assert settings.agent.interval_seconds == 30 and settings.agent.min_gain == 0.05


@pytest.mark.parametrize(("section", "keys"), GONE.items())
def test_keys_that_went_are_said_with_the_way_out(
    release: Path, section: str, keys: dict[str, str]
) -> None:
    """One sentence a key; what is misspelt in the same section is still an error."""
    text = (release / "sar-agent.toml").read_text()
    assert f"[{section}]" in text
    sentences = gone_keys(release / "sar-agent.toml")
    for key, why in keys.items():
        [said] = [one for one in sentences if one.startswith(f"{section}.{key} ")]
        assert why in said and said.endswith("; remove the key")
    with pytest.raises(ConfigError, match="no such key"):
        parse_config(text.replace(f"[{section}]", f"[{section}]\nmisspelt = 1"))


@pytest.mark.parametrize(
    ("offsets", "lanes", "hop", "settings", "said"),
    [
        (1, 1, 1, "", ""),
        (1, 3, 1, "", "use 3 virtual lanes, chosen hop by hop"),
        (1, 3, 0, "", "max_lanes = 3 and hosts_use_path_records = true in [agent]"),
        (1, 3, 1, "max_lanes = 8", ""),
        (1, 3, 1, "  max_lanes=2 # of 4", "use 3 virtual lanes"),
        (2, 2, 0, "", ""),
        (2, 3, 0, "", "use 3 virtual lanes"),
    ],
)
def test_the_package_warns_before_the_upgrade_where_several_lanes_are_in_force(
    release: Path, offsets: int, lanes: int, hop: int, settings: str, said: str
) -> None:
    """With an LMC above 0, LID offset 1 may have a lane of its own."""
    file, run = release / "sar-agent.toml", release / "run"
    file.write_text(f'[agent]\nrun_dir = "{run}"\n{settings}\n')
    run.mkdir()
    routes = bytearray((release / "state/generations/4.sar").read_bytes())
    routes[40], routes[41], routes[44] = offsets, lanes, hop
    (run / "routes.sar").write_bytes(routes)
    script = (Path(__file__).parents[2] / "deploy/packages/deb-preinst").read_text()
    script = script.replace("/etc/sar-agent/sar-agent.toml", str(file))

    def warned(step: str) -> str:
        words = ["sh", "-c", script, "preinst", step]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout == ""
        return " ".join(done.stderr.replace("sar-agent: ", "").split())

    answer = warned("upgrade")
    assert said in answer and bool(answer) == bool(said)
    assert warned("install") == ""
    (run / "routes.sar").unlink()
    assert warned("upgrade") == ""


def test_state_and_kept_generations_are_read_and_gone_on_from(release: Path) -> None:
    """OpenSM and the agent start again, by this release; the hold of the old one is kept."""
    net = (release / "fabric.net").read_text()
    world = World(release)
    world.net.write_text(net)
    world.bridge.fabric = world.fabric
    shutil.copy(release / "state/generations/4.sar", release / "run/routes.sar")
    world.bridge.start_again()
    world.source.records = (*JOBS, MANY)
    state = world.agent.installed.store.load()
    assert state is not None and (state.generation, len(state.jobs)) == (4, 3)
    assert state.hold is not None and world.agent.installed.generations.broken() == []
    assert world.once().result is Result.NOTHING
    world.source.records = JOBS
    assert world.once().result is Result.HELD and world.bridge.loads == []
    site = build_site(world.agent.config, world.bridge.manager, world.source)
    said = rollback(world.agent.config, 3, None, site)
    assert said.startswith("the tables of generation 3 are in force again as generation 5")
    assert resume(world.agent.config).startswith("generation 5 is no longer held")
    assert world.once().result is Result.INSTALLED
    rows = world.agent.committer.decisions.history.last(99)
    assert [row.generation for row in rows] == [6, 5, 4, 3, 2, 1]


def test_the_database_is_read_and_written(release: Path) -> None:
    history, days = History(release / "state"), JobDays(release / "state")
    old = history.last(9)
    assert [row.reason for row in old] == ["rollback", "jobs_changed", "jobs_changed", "first"]
    assert old[1].predicted and old[1].predicted["effective_efi_max"] == 8
    history.add(ROW)
    assert history.last(9) == [ROW, *old]
    seen = days.all()
    assert {day.job for day in seen} == {"1", "2", "3"} and all(day.sums for day in seen)
    days.keep([JobDay(seen[0].day, "9", 0, True)])
    assert days.all()[:-1] == seen and days.saved() == JobDays(release / "state").saved()


@dataclass(frozen=True)
class NewerRow(Row):
    """A release adds columns."""

    longest_hops: int | None = None
    words: str = "none"
    names: list[str] = field(default_factory=list)


@dataclass
class NewerDay(JobDay):
    """A release adds columns."""

    shares: dict[str, Any] = field(default_factory=dict)
    paused: bool = False


def newer(release: Path) -> tuple[SqliteTable[NewerRow], SqliteTable[NewerDay]]:
    path = release / "state" / HISTORY
    key = "(%s, PRIMARY KEY (day, job, start, ours))"
    rows = SqliteTable(path, "decisions", NewerRow, "(id INTEGER PRIMARY KEY, %s)")
    return rows, SqliteTable(path, "job_days", NewerDay, key)


def test_columns_that_a_release_adds_are_made_by_the_store(release: Path) -> None:
    history, days = newer(release)
    old, old_days = history.select("ORDER BY id"), days.select("ORDER BY job, first")
    assert [(row.longest_hops, row.words, row.names) for row in old] == [(None, "none", [])] * 4
    assert old_days and all((day.shares, day.paused) == ({}, False) for day in old_days)
    assert history.query("SELECT longest_hops FROM decisions WHERE longest_hops IS NULL LIMIT 1")
    row = NewerRow(**vars(ROW), longest_hops=4, words="many", names=["a"])
    day = NewerDay(old_days[0].day, "9", 0, True, shares={"a": 0.5}, paused=True)
    for _ in range(2):
        history.write(lambda base: history.upsert(base, [row]))
        days.write(lambda base: days.upsert(base, [day]))
    assert history.select("ORDER BY id") == [*old, row, row]
    assert days.select("ORDER BY job, first") == [*old_days, day]
    # The old release goes on with the file of the new one, as after a downgrade.
    before = History(release / "state")
    before.add(ROW)
    assert before.last(1) == [ROW] and len(JobDays(release / "state").all()) == len(old_days) + 1
    assert history.select("ORDER BY id DESC LIMIT 1") == [NewerRow(**vars(ROW))]


def test_two_programs_may_add_a_column_at_once(release: Path) -> None:
    """A rollback by hand, while the agent runs: SQLite lets one of them wait."""
    history, _ = newer(release)
    other, _ = newer(release)
    with sqlite3.connect(history.path) as base:
        known = history._columns_of(base)
    looks = [known]
    columns = history._columns_of

    def late(base: sqlite3.Connection) -> set[str]:
        if looks:
            other.write(lambda more: other.upsert(more, [NewerRow(**vars(ROW))]))
            return looks.pop()
        return columns(base)

    history._columns_of = late  # type: ignore[method-assign]
    history.write(lambda base: history.upsert(base, [NewerRow(**vars(ROW))]))
    assert len(history.select("")) == 6
