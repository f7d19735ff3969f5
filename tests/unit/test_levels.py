"""Service levels that jobs were told: kept as long as one of them runs, and part of the proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.check.transition import Way
from sar_agent.formats.routes_file import DROPPED
from sar_agent.install.transit import NotSafe
from sar_agent.opensm.plugin_client import PluginRefused
from tests.worlds.level_tables import FABRIC, T1, T2, Place, told


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_levels_of_the_plan_before_last_are_part_of_the_proof(place: Place) -> None:
    """Each step was `direct`, and connections made under T0 and under T2 closed
    a credit loop in lane 1, for ever."""
    assert place.go(T1).transition.way is Way.DIRECT  # type: ignore[union-attr]
    with pytest.raises(NotSafe, match="a credit loop in lane"):
        place.go(T2)
    assert place.fake.generation == 2


@pytest.mark.parametrize("starts", [[], [1000.0], [1000.0, 5000.0]])
def test_they_are_forgotten_with_the_last_job_of_the_time(
    place: Place, starts: list[float]
) -> None:
    place.go(T1)
    place.restart().forget_ended(starts)
    assert place.go(T2).transition.way is Way.DIRECT  # type: ignore[union-attr]
    place.restart().forget_ended([])
    assert not place.levels.all_assigned & ~0b11


def test_a_job_whose_start_nobody_knows_is_as_old_as_can_be(place: Place) -> None:
    place.go(T1)
    place.restart().forget_ended([2000.0, None])
    with pytest.raises(NotSafe):
        place.go(T2)


def test_levels_of_a_refused_plan_were_never_assigned(place: Place) -> None:
    place.go(T1)
    place.levels.forget_ended([])
    place.fake.refuse = ["no"]
    with pytest.raises(PluginRefused):
        place.go(told(0))
    assert place.levels.assigned(FABRIC, T2) is None, "only T1, which is in force"


def test_unused_levels_are_dropped_and_those_of_live_jobs_are_not(place: Place) -> None:
    kept = place.go(T1).in_force.file.sl_to_vl
    assert kept is not None and kept.tolist() == [0, 1] + [DROPPED] * 14
    none = told()
    for s in (2, 3):  # the other way round, so that level 0 does for all
        none.egress[0, [(s + 2) % 4, 4 + (s + 2) % 4], s] = 3
    place.go(none)
    assert place.fake.tables.sl_to_vl.tolist() == [0, 1] + [DROPPED] * 14, "T0 and T1 said level 1"
    place.levels.forget_ended([])
    place.go(none)
    assert place.fake.tables.sl_to_vl.tolist() == [0] + [DROPPED] * 15


def test_nothing_is_dropped_that_another_engine_may_have_told(place: Place) -> None:
    place.fake.fall_back()
    place.go(T1)
    assert place.fake.tables.sl_to_vl.tolist() == [0, 1] * 8
    place.levels.forget_ended([])
    place.go(T1)
    assert place.fake.tables.sl_to_vl.tolist() == [0, 1] + [DROPPED] * 14


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 100])
def test_a_file_that_is_none_is_said(
    place: Place, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (place.folder / "levels.bin").write_bytes(content)
    place.restart()
    assert "levels.bin: cannot be used" in caplog.text
