"""How plans come into force: at once, in stages, or not; and what the history says of it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.history import History
from sar_agent.check.mixer import Mixer
from sar_agent.check.transition import Way
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.bridge import Bridge
from sar_agent.install.plan import Plan, make_plan, routes_to_file
from sar_agent.install.routes_file import read_routes_file
from sar_agent.install.transit import NotSafe, bring_into_force, in_force, transition_to
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from tests.fake_opensm import FakeBridge
from tests.unit.test_check import around, ring
from tests.unit.test_history import ROW

OLD, NEW, MIXED = [1, 4, 4], [2, 3, 4], [1, 3, 4]
"""Ports towards the host on switch 2; OLD and NEW must not be mixed."""


class Place:
    """A fabric (else a ring of three switches) with `routes` in force as generation 1."""

    def __init__(self, folder: Path, routes: Routes, fabric: Fabric | None = None) -> None:
        self.fabric = fabric or ring()
        self.fake = FakeBridge(folder, self.fabric)
        self.fake.tables, self.fake.generation = routes_to_file(self.fabric, routes, 1), 1
        self.bridge: Bridge = self.fake  # type: ignore[assignment]
        self.path = folder / "routes.sar"

    def plan(self, routes: Routes) -> Plan:
        plan = make_plan(2, self.fabric, JobMix(()), routes)
        return transition_to(plan, in_force(self.bridge, plan))

    def go(self, plan: Plan, **more: Any) -> Any:
        return bring_into_force(self.bridge, plan, self.path, in_force(self.bridge, plan), **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, around(ring(), OLD))


def test_what_must_not_be_mixed_is_installed_in_stages(place: Place) -> None:
    seen: list[Plan] = []
    plan = place.plan(around(place.fabric, NEW))
    arrived = place.go(plan, between=seen.append)
    assert place.fake.loads == [2, 3] and arrived.plan.generation == 3
    assert [stage.generation for stage in seen] == [2, 3]
    assert all(stage.verdict.passed for stage in seen)
    first, last = (stage.routes.egress[0, 2].tolist() for stage in seen)
    assert first == [2, 4, 4] and last == NEW
    assert arrived.found.generation == 3 and arrived.changed == (2, 2)
    assert arrived.transition and arrived.transition.way is Way.STAGED
    assert read_routes_file(place.path).generation == 3


def with_two_offsets(to_last: list[int], to_middle: int) -> Routes:
    """Switch 0 leads to switch 1 by port `to_middle`, at both offsets."""
    routes = around(ring(), to_last)
    egress = routes.egress.repeat(2, axis=0)
    egress[:, 4, 0] = to_middle
    return replace(routes, egress=egress)


def test_a_stage_is_in_force_as_planned_where_a_switch_has_one_lid(tmp_path: Path) -> None:
    place = Place(tmp_path, with_two_offsets(OLD, 1))
    seen: list[Plan] = []
    arrived = place.go(place.plan(with_two_offsets(NEW, 2)), between=seen.append)
    assert arrived.transition.way is Way.STAGED and len(seen) > 1
    assert [stage.routes.egress[:, 4, 0].tolist() for stage in seen] == [[2, 2]] * len(seen)
    assert (arrived.plan.routes.egress == with_two_offsets(NEW, 2).egress).all()


def test_what_leads_to_a_switch_alike_at_all_offsets_moves_once() -> None:
    old, new = with_two_offsets(OLD, 1), with_two_offsets(NEW, 2)
    alike = Mixer(ring(), old, new).changed()
    assert alike[0].nonzero()[0].tolist() == [2, 4] and alike[1].nonzero()[0].tolist() == [2]
    old.egress[1, 4, 0] = 2  # switches have several LIDs, and another engine's tables are in force
    assert Mixer(ring(), old, with_two_offsets(NEW, 1)).changed()[:, 4].tolist() == [False, True]


def test_a_stage_that_is_refused_leaves_the_last_one_in_force(place: Place) -> None:
    plan = place.plan(around(place.fabric, NEW))

    def refuse(stage: Plan) -> None:
        place.fake.refuse = ["no"]

    with pytest.raises(Exception, match="no"):
        place.go(plan, between=refuse)
    assert place.fake.generation == 2 and place.fake.loads == [2, 3]
    assert read_routes_file(place.path).generation == 2


def test_no_way_changes_nothing(tmp_path: Path) -> None:
    """One lane in force, two in the plan: which of the SL2VL tables are new when is not known."""
    fabric = load_fabric("torus:5,hosts=1")
    one = load_engine("updn").route(fabric, JobMix(()), Options())
    place = Place(tmp_path, one, fabric)
    plan = place.plan(routed(load_engine("sar"), fabric, JobMix(()), Options(lanes="path")))
    with pytest.raises(NotSafe, match=r"lanes are others, too.*; the routes in force stay"):
        place.go(plan)
    assert place.fake.loads == [] and not place.path.exists()


def test_tables_that_are_not_sound_are_replaced_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path, around(ring(), MIXED))
    arrived = place.go(place.plan(around(place.fabric, NEW)))
    assert arrived.plan.generation == 2 and arrived.transition.way is Way.UNPROVED
    assert "not proved, because what is in force is not sound itself" in caplog.text


def test_where_nothing_can_be_read_back_there_is_no_verdict(place: Place) -> None:
    plan = make_plan(2, place.fabric, JobMix(()), around(place.fabric, NEW))
    place.fake.away = True
    assert in_force(place.bridge, plan) is None
    assert transition_to(plan, None).transition is None


def test_a_history_of_an_older_agent_is_read_and_gone_on_with(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.add(ROW)
    with sqlite3.connect(history.path) as base:
        for column in ("transition", "blocks_changed"):
            base.execute(f"ALTER TABLE decisions DROP COLUMN {column}")
    assert history.last(1) == [ROW]
    history.add(ROW)
    assert history.last(9) == [ROW, ROW]
