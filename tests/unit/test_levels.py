"""Service levels that jobs were told: kept as long as one of them runs, and part of the proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.check.transition import Way
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import DROPPED
from sar_agent.install.levels import MOST, AssignedLevels
from sar_agent.install.plan import make_plan
from sar_agent.install.transit import CommitResult, NotSafe, Transit
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginRefused
from sar_agent.routing import Routes
from tests.fake_opensm import FakeBridge


def four(hosts: int = 4) -> Fabric:
    """A ring of four switches with a host on each: port 2 leads onward, port 3 back."""
    b = FabricBuilder("ring")
    for s in range(4):
        b.add_switch(100 + s, f"s{s}", 12)
    for s in range(hosts):
        b.add_terminal(900 + s, f"h{s} HCA-1", f"h{s}", s, 1)
    for s in range(4):
        b.add_link(s, 2, (s + 1) % 4, 3)
    return b.build()


FABRIC = four()


def told(*flows: int) -> Routes:
    """Tables that never change; of the four flows that go two hops onward, `flows` have level 1."""
    egress = np.full((1, 8, 4), 255, np.uint8)
    level = np.zeros_like(egress)
    for d in range(4):
        for s in range(4):
            gap = (d - s) % 4
            egress[0, d, s] = 1 if gap == 0 else 2 if gap <= 2 else 3
            egress[0, 4 + d, s] = 0 if gap == 0 else 2 if gap <= 2 else 3
    for flow in flows:
        level[0, (flow + 2) % 4, flow] = level[0, 4 + (flow + 2) % 4, flow] = 1
    return Routes("by-hand", FABRIC.digest, egress, virtual_lanes=2, service_level=level)


T0, T1, T2 = told(0, 1), told(1, 2), told(2, 3)


class Place:
    """T0 is in force; the clock stands at 1000."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.fake: Any = FakeBridge(folder, FABRIC)
        self.fake.tables, self.fake.generation = routes_to_file(FABRIC, T0, 1), 1
        self.fake.engine = "sar"
        self.levels = self.restart()

    def restart(self) -> AssignedLevels:
        self.levels = AssignedLevels(self.folder, lambda: self.now)
        return self.levels

    def go(self, routes: Routes) -> CommitResult:
        transit = Transit(self.fake.manager, self.levels)
        plan = make_plan(self.fake.generation + 1, FABRIC, JobMix(()), routes)
        arrived = transit.install(plan)
        self.now += 100
        return arrived


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_levels_of_the_plan_before_last_are_part_of_the_proof(place: Place) -> None:
    """The review's e12: each step was `direct`, and connections made under T0 and under T2 closed
    a credit loop in lane 1, for ever."""
    assert place.go(T1).transition.way is Way.DIRECT  # type: ignore[union-attr]
    with pytest.raises(NotSafe, match="a credit loop in lane"):
        place.go(T2)
    assert place.fake.generation == 2


def test_they_are_on_the_disk(place: Place) -> None:
    place.go(T1)
    place.restart().forget_ended([999.0])
    with pytest.raises(NotSafe):
        place.go(T2)


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


def test_what_was_refused_was_never_told(place: Place) -> None:
    place.go(T1)
    place.levels.forget_ended([])
    place.fake.refuse = ["no"]
    with pytest.raises(PluginRefused):
        place.go(told(0))
    assert place.levels.assigned(FABRIC, T2) is None, "only T1, which is in force"


def test_few_are_kept_and_nothing_of_them_is_lost(place: Place) -> None:
    levels, steps = place.levels, [told(flow) for flow in (0, 1, 2, 3)]
    for before, after in zip(steps * 3, (steps * 3)[1:], strict=False):
        levels.begin(FABRIC, before, after, ours=True)
        levels.end_others(FABRIC, after)
        place.now += 1
    assert len(place.restart()._eras) <= MOST
    bits = place.levels.assigned(FABRIC, steps[0])
    assert bits is not None
    for flow in range(4):
        assert bits[0, (flow + 2) % 4, flow] == 0b11
    assert bits[0, 1, 0] == 0b01


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


def test_one_lane_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    place = Place(tmp_path)
    one = replace(T0, virtual_lanes=1, service_level=None)
    place.levels.begin(FABRIC, one, one, ours=True)
    assert list(tmp_path.glob("levels*")) == []
    assert place.levels.assigned(FABRIC, one) is None


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 100])
def test_a_file_that_is_none_is_said(
    place: Place, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (place.folder / "levels.bin").write_bytes(content)
    place.restart()
    assert "levels.bin: cannot be used" in caplog.text


def test_other_nodes_keep_what_they_were_told(place: Place) -> None:
    place.go(T1)
    other = four(3)
    table = Routes("by-hand", other.digest, T2.egress[:, :7], service_level=T2.egress[:, :7])
    bits = place.levels.assigned(other, table)
    assert bits is not None and bits.shape == (1, 7, 4)
    assert bits[0, 2, 0] == 0b11 and bits[0, 6, 3] == 0b01 and bits[0, 5, 0] == 0b11
