"""What is remembered of each job: `Agent.observers["job_days"]` and its table.

The times on the site's own routes come from `Agent.observers["baseline"]`.
"""

from __future__ import annotations

import sqlite3
from datetime import date
from pathlib import Path

import pytest

from sar_agent.agent import job_days
from sar_agent.agent.job_days import KEPT_DAYS, JobDay, JobDays
from sar_agent.agent.outcome import Result
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.quality import measure
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine
from sar_agent.services.job_days import observer as watch
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import job

TODAY = date.today().toordinal()


class Clocks:
    """Both clocks of the observer, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = watch.time.time(), 1000.0
        monkeypatch.setattr(watch, "time", self)

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def table(world: World) -> JobDays:
    return JobDays(world.folder / "state")


def test_a_job_that_ends_within_a_pass_is_remembered_by_the_pass(tmp_path: Path) -> None:
    """A five-phase update polls the queue while it installs."""
    world = World(tmp_path)
    world.once()
    world.source.records = (*JOBS, job("3", "n003", "n007"))

    def ends() -> None:
        world.source.records = world.source.records[1:]
        assert world.agent.observer.owners_now()

    world.bridge.on_load.append(ends)
    assert world.once().result is Result.INSTALLED
    assert not world.value("sar_agent_unexpected_errors_total", where="job_days")
    assert {row.job for row in table(world).all()} == {"1", "2", "3"}


def test_a_job_is_kept_with_the_times_that_it_met(tmp_path: Path, clocks: Clocks) -> None:
    """Shadow mode, one pass a minute by a timer: each pass is a process of its own."""
    world = World(tmp_path, mode="observe")
    for _ in range(3):
        world.once()
        clocks.pass_by(60)
        world.restart()
    world.source.records = JOBS[1:]
    world.once()
    [row] = table(world).of_job("1")
    assert (row.day, row.hosts, row.ours, row.leaf_count) == (TODAY, 3, False, 3)
    assert row.seconds == pytest.approx(120, abs=1)
    assert set(row.leaves.values()) == {1} and len(row.leaves) == 3
    for tables, engine in (("in_force", "minhop"), ("planned", "sar-plus")):
        mix = mix_of_records(world.fabric, JOBS).mix
        routes = load_engine(engine).route(world.fabric, mix, Options())
        traffic = traffic_of(world.fabric, mix, routes)
        j = next(j for j, job in enumerate(mix.jobs) if job.id == "1")
        expected = max(1.0, traffic.job_load[j]), traffic.phase_contention[j]
        assert row.mean(tables) == pytest.approx(expected, rel=1e-3), tables
    [other] = table(world).of_job("2")
    assert other.seconds == pytest.approx(180, abs=1)


def test_after_going_live_the_baseline_stands_beside_what_is_in_force(
    tmp_path: Path, clocks: Clocks
) -> None:
    world = World(tmp_path)
    for _ in range(4):
        world.once()
        clocks.pass_by(30)
    rows = table(world).all()
    assert {row.job for row in rows} == {"1", "2"}
    live = [row for row in rows if row.ours]
    assert len(live) == 2
    for row in live:
        assert row.baseline == "minhop" and row.mean("baseline") is not None
        assert row.mean("in_force") is not None
        assert row.worst_link.count('"') == 4 and row.worst_load is not None


def test_jobs_that_share_the_worst_link_are_named(tmp_path: Path, clocks: Clocks) -> None:
    world = World(tmp_path)
    world.source.records = tuple(
        job(str(i), f"n{1 + i:03}", f"n{5 + i:03}", f"n{9 + i:03}") for i in range(4)
    )
    for _ in range(2):
        world.once()
        clocks.pass_by(30)
    rows = table(world).all()
    assert any(row.shared and row.job not in row.shared for row in rows)
    for row in rows:
        assert row.shared_count == len(row.shared) <= job_days.MOST_SHARED


def test_a_clock_that_jumps_counts_no_time_and_deletes_nothing(
    tmp_path: Path, clocks: Clocks
) -> None:
    world = World(tmp_path)
    days = table(world)
    days.path.parent.mkdir(parents=True, exist_ok=True)
    days.keep([JobDay(TODAY - back, "old", 0, False) for back in range(5)])
    world.once()
    for jump in (-10 * 86400, 20 * 86400, 100 * 365 * 86400, -120 * 365 * 86400):
        clocks.wall += jump
        clocks.pass_by(10)
        world.once()
    assert len(days.of_job("old")) == 5
    assert sum(row.seconds for row in days.of_job("1")) <= 5 * watch.LONGEST_PASS_SECONDS


def test_a_stop_of_the_agent_is_no_time_of_the_job(tmp_path: Path, clocks: Clocks) -> None:
    world = World(tmp_path)
    world.once()
    clocks.pass_by(8 * 3600)
    world.restart()
    world.once()
    [row] = {row.job: row for row in table(world).of_job("1")}.values()
    assert row.seconds <= watch.LONGEST_PASS_SECONDS


def test_old_days_go_and_the_file_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = JobDays(tmp_path)
    for day in range(2 * KEPT_DAYS):
        days.keep([JobDay(TODAY + day, str(i), 0, False) for i in range(3)])
    kept = {row.day for row in days.all()}
    assert kept == {TODAY + day for day in range(KEPT_DAYS, 2 * KEPT_DAYS)}
    monkeypatch.setattr(job_days, "MOST_BYTES", 1)
    days.keep([])
    assert {row.day for row in days.all()} == kept - {min(kept)}


def test_a_damaged_file_is_replaced_and_the_pass_goes_on(tmp_path: Path, clocks: Clocks) -> None:
    world = World(tmp_path)
    world.once()
    table(world).path.write_bytes(b"no database" * 999)
    clocks.pass_by(30)
    assert world.restart().pass_once().ok
    assert {row.job for row in table(world).all()} == {"1", "2"}


def test_a_disk_that_takes_nothing_is_said_once(
    tmp_path: Path,
    clocks: Clocks,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("sar_agent.util.sqlite_file.sqlite3.connect", full)
        for _ in range(3):
            assert world.once().ok
    assert caplog.text.count("the history has a gap") == 1
    world.once()
    assert table(world).all()


def test_damaged_texts_are_empty_ones(tmp_path: Path) -> None:
    """In rows of older releases, which have no checksum."""
    days = JobDays(tmp_path)
    days.keep([JobDay(TODAY, "1", 0, False, leaves={"a": 2}, shared=["2"])])
    texts = "leaves = '{\"', shared = NULL, sums = '[1,'"
    with sqlite3.connect(days.path) as base:
        base.execute(f"UPDATE job_days SET {texts}, checksum = NULL")
    [row] = days.all()
    assert (row.leaves, row.shared, row.mean("in_force")) == ({}, [], None)


def test_the_gain_stays_visible_beside_the_routes_of_opensms_engine(tmp_path: Path) -> None:
    world = World(tmp_path, baseline="ftree")

    def load(routes: str) -> float | None:
        return world.value("sar_agent_channel_load_max", routes=routes)

    world.once()
    assert load("baseline") is None, "an install comes first"
    assert world.once().result is Result.NOTHING
    for records in (JOBS, JOBS[:1]):
        world.source.records = records
        world.once()
        mix = mix_of_records(world.fabric, records).mix
        routes = load_engine("ftree").route(world.fabric, JobMix(()), Options())
        assert load("baseline") == measure(world.fabric, mix, routes).load_max
        assert load("in_force") is not None
    write_ibsim_net(load_fabric("torus:3x3,hosts=2"), world.net)
    world.bridge.topology_changes += 1
    for _ in range(2):
        world.once()
    routes = load_engine("minhop").route(world.fabric, JobMix(()), Options())
    mix = mix_of_records(world.fabric, JOBS[:1]).mix
    assert load("baseline") == measure(world.fabric, mix, routes).load_max
