"""What happens when the machine's clock is set by a day, forward or back, while things run.

The clock is a fake one here: `time.time` is stepped in this process, `time.monotonic` is not, which
is what setting the clock does. Holds: tests/unit/test_rights.py.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sar_agent.agent.hints import SECONDS_UNSEEN, Hints
from sar_agent.events.inbox import JobReport
from sar_agent.formats.conversion import routes_to_file
from sar_agent.services.keys.pool import LONGEST_LEASE, KeyPool
from tests.worlds.fake_opensm import job
from tests.worlds.key_site import ALICE, Site
from tests.worlds.level_tables import FABRIC, T0, T1, T2
from tests.worlds.level_tables import Place as LevelsPlace
from tests.worlds.rings import around, ring
from tests.worlds.transit_place import NEW, OLD, Place

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
    leases.save([lease.model_copy(update={"ends": lease.ends + 400 * DAY})])
    pool = KeyPool(site.agent.config.keys, tmp_path / "state", site.desk)
    [again] = pool.leases
    assert again.ends is not None
    assert again.ends - lease.ends < LONGEST_LEASE


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
    assert SECONDS_UNSEEN < DAY


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
