"""What happens when the machine's clock is set by a day, forward or back, while things run.

The clock is a fake one here: `time.time` is stepped in this process, `time.monotonic` is not, which
is what setting the clock does. Holds: tests/unit/test_rights.py.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sar_agent.agent.hints import PATIENCE, Hints
from sar_agent.agent.outcome import Result
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.events.inbox import JobReport
from sar_agent.events.rate import TokenBuckets
from sar_agent.formats.conversion import routes_to_file
from sar_agent.keys.pool import KeyPool
from sar_agent.standby.terms import Claim, precedence
from tests.fake_opensm import job
from tests.standby_certificate import certificate
from tests.standby_sides import row, two_sides
from tests.unit.test_check import around, ring
from tests.unit.test_keys import ALICE, Site
from tests.unit.test_levels import FABRIC, T0, T1, T2
from tests.unit.test_levels import Place as LevelsPlace
from tests.unit.test_loop import JOBS, World
from tests.unit.test_transit import NEW, OLD, Place

DAY = 86400.0
HOQ = 1.0


class FakeWallClock:
    """`step` sets the clock of the machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead, real = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: real() + self._ahead)

    def step(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> FakeWallClock:
    return FakeWallClock(monkeypatch)


either = pytest.mark.parametrize("step", [DAY, -DAY, 1.0], ids=["forward", "back", "leap second"])


# ---- tables whose packets are on their way


@either
def test_older_tables_are_waited_for_all_the_same(
    tmp_path: Path, wall: FakeWallClock, step: float
) -> None:
    """A day forward made tables of a moment ago a day old, and their packets gone."""
    place = Place(tmp_path, around(ring(), OLD))
    place.fake.head_of_queue = HOQ
    place.transit.read(place.fabric)
    place.fake.tables = routes_to_file(place.fabric, around(place.fabric, [2, 4, 4]), 1)
    place.fake.built_at = time.time()
    wall.step(step)
    place.transit.read(place.fabric)
    place.go(place.plan(around(place.fabric, NEW)))
    assert place.slept == [3 * HOQ]


def test_tables_that_nobody_saw_are_waited_for(tmp_path: Path) -> None:
    """OpenSM sent another engine's tables for a moment, and then the same as before."""
    place = Place(tmp_path, around(ring(), OLD))
    place.fake.head_of_queue = HOQ
    place.transit.read(place.fabric)
    assert not place.recent.left()
    place.fake.routings += 1
    place.fake.built_at = time.time() + 60
    place.transit.read(place.fabric)
    assert not place.recent.left(), "the same tables once more"
    place.fake.routings += 2
    place.transit.read(place.fabric)
    assert place.recent.must_wait() == 3 * HOQ


# ---- jobs: their age, their keys, their hints, their levels


@either
def test_new_jobs_are_served(tmp_path: Path, wall: FakeWallClock, step: float) -> None:
    """After a day back, jobs would have been too young for a day."""
    world = World(tmp_path, min_job_age_seconds=30)
    world.source.records = tuple(one._replace(start=time.time() - 100) for one in JOBS)
    world.once()
    new = job("9", "n003", "n007")._replace(start=time.time() - 31)
    wall.step(step)
    world.source.records = (*world.source.records, new)
    assert world.once().result is Result.INSTALLED


@either
def test_no_look_is_put_off_until_tomorrow(
    tmp_path: Path, wall: FakeWallClock, step: float
) -> None:
    world = World(tmp_path, min_job_age_seconds=30)
    pacing = Pacing(world.agent.config.agent, patient=True)
    world.source.records = tuple(one._replace(start=time.time()) for one in JOBS)
    wall.step(step)
    pacing.begin()
    pacing.observed(world.agent.observer.observe())
    pacing.end()
    assert pacing.left() < 3600


@either
def test_keys_last_as_long_as_they_were_leased_for(
    tmp_path: Path, wall: FakeWallClock, step: float
) -> None:
    site = Site(tmp_path)
    site.pass_()
    assert site.ask(ALICE, phase="x", traffic="ring", lease=600.0)["state"] == "in_force"
    wall.step(step)
    site.pass_()
    [lease] = site.agent.keys.pool.leases
    assert lease.ends is not None and not site.agent.keys.pool.leases.over()
    assert site.agent.keys.pool.leases.over(lease.ends + 1) == [lease]


def test_a_lease_of_a_clock_that_was_ahead_ends_at_last(tmp_path: Path) -> None:
    """The clock was set back while no agent ran."""
    site = Site(tmp_path)
    site.pass_()
    site.ask(ALICE, phase="x", traffic="ring", lease=600.0)
    leases = site.agent.keys.pool.leases
    [lease] = leases
    assert lease.ends is not None
    leases.put([lease.model_copy(update={"ends": lease.ends + 400 * DAY})])
    pool = KeyPool(site.agent.config.keys, tmp_path / "state", site.desk)
    [again] = pool.leases
    assert again.ends is not None
    assert again.ends - lease.ends < site.agent.config.keys.lease_max_seconds


@either
def test_hints_on_new_jobs_wait_for_their_minute(
    tmp_path: Path, wall: FakeWallClock, step: float
) -> None:
    hints = Hints(tmp_path, frozenset())
    hints.add([JobReport("7", ALICE, "ring")])
    wall.step(step)
    hints.drop_ended(())
    own = job("7", "n1", "n2")._replace(uid=ALICE)
    assert [one.traffic for one in hints.apply([own])] == ["ring"]
    assert PATIENCE < DAY


def test_levels_stay_where_slurm_s_clock_is_ahead(tmp_path: Path) -> None:
    """The agent's clock was set back by a day: its eras ended before jobs began that know them."""
    place = LevelsPlace(tmp_path)
    place.levels.begin(FABRIC, T0, T1, ours=True)
    place.now = 100_000.0
    began = place.now - 10
    place.levels.forget_ended([began])
    place.now -= DAY
    place.levels.end_others(FABRIC, T1)
    place.levels.forget_ended([began])
    assert place.levels.assigned(FABRIC, T1) is not None, "T0's levels, too"
    place.levels.forget_ended([began + 1])
    assert place.levels.assigned(FABRIC, T2) is None


# ---- what counts by no wall clock


@either
def test_tokens_are_neither_given_nor_taken(wall: FakeWallClock, step: float) -> None:
    buckets = TokenBuckets(a_second=0.001, burst=5)
    for _ in range(5):
        assert buckets.take(ALICE)
    wall.step(step)
    assert not buckets.take(ALICE)


@either
def test_who_counts_does_not_depend_on_when(step: float) -> None:
    a, b = "a" * 16, "b" * 16
    values = {"master": False, "generation": 5, "highest": 5, "term": 2, "decided": 1000.0}
    own = Claim.model_validate({"node": a, "name": "a", "holder": a} | values)
    for term in (1, 2, 3):
        peer = Claim.model_validate({"node": b, "name": "b", "holder": b} | values | {"term": term})
        moved = peer.model_copy(update={"decided": peer.decided + step})
        assert precedence(own, moved) is precedence(own, peer)


def test_rows_of_a_clock_that_was_ahead_hide_none_that_come_after(tmp_path: Path) -> None:
    """Both agents have a row of tomorrow; the clock is right again, and the peer decides."""
    now = time.time()
    with two_sides(tmp_path, certificate(tmp_path / "secret.pem")) as (a, b):
        a.lead()
        a.put(4)
        a.link.history.add(row(now + DAY, 5))
        assert b.link.exchange()
        for age in (20, 10):
            a.link.history.add(row(now - age, 6))
        assert b.link.exchange()
        known = {one.at for one in b.link.history.last(9)}
        assert {now - 20, now - 10, now + DAY} <= known


def test_the_newest_decision_that_is_not_ahead(tmp_path: Path) -> None:
    with two_sides(tmp_path, certificate(tmp_path / "secret.pem")) as (a, _):
        assert a.link.history.newest_at(100.0) == 0
        a.link.history.add(*[replace(row(at, 1), at=at) for at in (1.0, 300.0, 2.0)])
        assert a.link.history.newest_at(100.0) == 2.0
