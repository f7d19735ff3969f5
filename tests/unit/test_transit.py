"""How plans come into force: at once, in stages, or not; and what the history says of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from sar_agent.agent.history import History
from sar_agent.check.table_sets import TableSets
from sar_agent.check.transition import Way
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import read_generation, read_routes_file
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.recent import RecentTables, longest_way
from sar_agent.install.subnet_manager import InForce, NotYet
from sar_agent.install.transit import CommitResult, NotKnown, NotSafe, Transit, transition_to
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginRefused
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
        self.fake.engine, self.fake.built_at = "sar", 0
        self.path = folder / "routes.sar"
        self.slept: list[float] = []
        self.now = 0.0
        self.recent = RecentTables(lambda: self.now)
        self.transit = Transit(
            self.fake.manager, AssignedLevels(folder), recent=self.recent, sleep=self.sleep
        )

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def plan(self, routes: Routes) -> Plan:
        return make_plan(2, self.fabric, JobMix(()), routes)

    def go(
        self, plan: Plan, between: Callable[[Plan], object] = lambda stage: None, **more: Any
    ) -> CommitResult:
        """`between` is called with each stage that was installed."""
        before, install = self.transit.before(plan.fabric), self.transit.manager.install

        def seen(stage: Plan, proved_from: str | None) -> InForce:
            found = install(stage, proved_from)
            between(stage)
            return found

        with patch.object(self.transit.manager, "install", seen):
            return self.transit.bring(self.transit.examine(plan, before), before, **more)


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
    assert arrived.in_force.file.generation == 3 and arrived.changed == (2, 2)
    assert arrived.transition and arrived.transition.way is Way.STAGED
    assert read_routes_file(place.path).generation == 3


def test_sl2vl_tables_of_all_stages_are_counted(place: Place) -> None:
    def send() -> None:
        place.fake.sl2vl_tables += 5

    place.fake.on_load.append(send)
    arrived = place.go(place.plan(around(place.fabric, NEW)))
    assert place.fake.loads == [2, 3] and arrived.sl2vl_tables == 10


def test_sl2vl_tables_of_another_process_are_not_subtracted(place: Place) -> None:
    def restart() -> None:
        place.fake.pid, place.fake.sl2vl_tables = 2, 3

    place.fake.on_load.append(restart)
    assert place.go(place.plan(around(place.fabric, OLD))).sl2vl_tables is None


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
    alike = TableSets(ring(), old, new).changed()
    assert alike[0].nonzero()[0].tolist() == [2, 4] and alike[1].nonzero()[0].tolist() == [2]
    old.egress[1, 4, 0] = 2  # switches have several LIDs, and another engine's tables are in force
    assert TableSets(ring(), old, with_two_offsets(NEW, 1)).changed()[:, 4].tolist() == [
        False,
        True,
    ]


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
    with pytest.raises(NotSafe, match=r"the lanes change, too.*; the routes in force stay"):
        place.go(plan)
    assert place.fake.loads == [] and not place.path.exists()


def test_tables_that_are_not_sound_are_replaced_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path, around(ring(), MIXED))
    arrived = place.go(place.plan(around(place.fabric, NEW)))
    assert arrived.plan.generation == 2 and arrived.transition.way is Way.UNPROVED
    assert "not proved, because the routes in force are unsafe already" in caplog.text


def test_where_nothing_can_be_read_back_nothing_is_installed(place: Place) -> None:
    plan = place.plan(around(place.fabric, NEW))
    place.fake.away = True
    with pytest.raises(Unavailable, match="does not answer"):
        place.go(plan)
    assert transition_to(plan, None).transition is None


def test_tables_that_changed_under_a_load_are_read_and_decided_of_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Found live: a fallback engine rewrites the fabric while the load waits for OpenSM, and the
    history told of the change from the tables before."""
    fabric = load_fabric("xgft:2;4,4;1,2")
    ours = load_engine("dfsssp").route(fabric, JobMix(()), Options())
    place = Place(tmp_path, ours, fabric)
    old = place.fake.digest
    first = place.transit.before(fabric)
    assert (first.digest, first.generation) == (old, 1)

    def once() -> None:
        place.fake.on_load.clear()
        place.fake.fall_back()

    place.fake.on_load = [once]
    arrived = place.transit.install(place.plan(ours))
    assert arrived.transition and arrived.transition.way is Way.DIRECT  # not the same any more
    assert "reading what is in force again" in caplog.text
    minhop = load_engine("minhop").route(fabric, JobMix(()), Options())
    assert arrived.changed.entries == int((ours.egress != minhop.egress).sum()) > 0
    assert place.fake.generation == arrived.plan.generation == 2


def test_tables_that_never_stand_still_are_given_up(place: Place) -> None:
    def other() -> None:
        place.fake.lids += 1

    place.fake.on_load = [other]
    with pytest.raises(PluginRefused, match="is in force") as refused:
        place.transit.install(place.plan(around(place.fabric, [2, 4, 4])))
    assert refused.value.code == "changed"
    assert place.fake.loads == [2, 2, 2] and place.fake.generation == 1
    assert not place.path.exists()


def test_a_stage_that_finds_other_tables_is_examined_from_there(place: Place) -> None:
    """Somebody else has the fabric rewritten between two stages."""

    def other() -> None:
        if place.fake.loads == [2, 3]:
            place.fake.tables = routes_to_file(place.fabric, around(place.fabric, OLD), 2)

    place.fake.on_load = [other]
    arrived = place.transit.install(place.plan(around(place.fabric, NEW)))
    assert place.fake.loads == [2, 3, 3, 4]
    assert arrived.plan.generation == 4 and (arrived.changed == (2, 2))
    assert read_generation(place.path) == 4


def deaf(place: Place, had: int | None = None, switch: int = 0) -> None:
    """A switch has not confirmed: it was sent what is in force, and may have something else."""
    tables = place.fake.tables
    assert tables
    other = tables.forwarding.copy()
    if had is None:
        other[:, switch] = np.where(other[:, switch] == 0, 0, 254)
    else:
        other[:, switch, 2] = had
    place.fake.tables = replace(tables, had=other)


def test_what_is_not_known_is_not_taken_for_no_route(place: Place) -> None:
    """The review's e10: 255 of a switch that did not answer led to `unproved`, so to an install."""
    deaf(place)
    plan = place.plan(around(place.fabric, NEW))
    with pytest.raises(NotKnown, match="not known while switches"):
        place.go(plan)
    assert place.fake.loads == [] and not place.path.exists()
    place.fake.confirm()
    assert place.go(plan).transition.way is Way.STAGED  # type: ignore[union-attr]


def test_what_a_switch_may_have_takes_part_in_the_proof(place: Place) -> None:
    """Switch 1 was sent OLD and may have NEW: with OLD at switch 0 that is a credit loop."""
    deaf(place, NEW[1], 1)
    with pytest.raises(NotKnown):
        place.go(place.plan(around(place.fabric, NEW)))
    assert place.fake.loads == []


def test_a_way_that_is_safe_whatever_a_switch_has_is_taken(place: Place) -> None:
    place.fake.tables = routes_to_file(place.fabric, around(place.fabric, [2, 4, 4]), 1)
    deaf(place, OLD[0])
    arrived = place.go(place.plan(around(place.fabric, OLD)))
    assert arrived.transition and arrived.transition.way is Way.DIRECT
    assert arrived.in_force.confirmed and place.fake.loads == [2]


def test_what_was_sent_is_not_sent_again_by_us(place: Place) -> None:
    deaf(place, NEW[0])
    with pytest.raises(NotYet, match="these routes were sent; 1 switches have not confirmed"):
        place.go(place.plan(around(place.fabric, OLD)))
    assert place.fake.loads == []


HOQ = 0.5
"""Seconds at the head of a queue."""


def test_the_longest_way_is_counted_in_hops() -> None:
    fabric = ring()
    old = around(fabric, OLD)
    hops = longest_way(fabric, old)
    assert hops.tolist() == [[2, 2, 2, 1, 1, 1]]
    round_and_round = around(fabric, OLD)
    round_and_round.egress[0, 2] = [1, 2, 4]
    assert longest_way(fabric, round_and_round)[0, 2] == fabric.switches and hops[0, 2] == 2
    tree = load_fabric("xgft:3;2,2,2;1,2,2")
    assert longest_way(tree, load_engine("updn").route(tree, JobMix(()), Options())).max() == 4


def test_stages_wait_until_packets_of_the_tables_before_are_gone(place: Place) -> None:
    """The review's e11. OLD and NEW must not be mixed, and a packet that came by OLD may wait while
    both stages pass by."""
    place.fake.head_of_queue = HOQ
    arrived = place.go(place.plan(around(place.fabric, NEW)))
    assert arrived.transition and arrived.transition.drains == (False, True)
    assert place.slept == [HOQ * (2 + 1)] and place.fake.loads == [2, 3]


def test_stages_do_not_begin_where_packets_may_wait_without_limit(place: Place) -> None:
    place.fake.head_of_queue = -1
    with pytest.raises(NotSafe, match="sets no limit to how long they wait"):
        place.go(place.plan(around(place.fabric, NEW)))
    assert place.fake.loads == [] and place.slept == []


STEPS = OLD, [2, 4, 4], NEW
"""Each may be mixed with the next, but not all three."""


@pytest.mark.parametrize(("later", "slept"), [(0.0, [3 * HOQ]), (1.0, [3 * HOQ - 1]), (1.5, [])])
def test_installs_that_follow_each_other_wait_likewise(
    place: Place, later: float, slept: list[float]
) -> None:
    place.fake.head_of_queue = HOQ
    for ports in STEPS[1:]:
        arrived = place.go(place.plan(around(place.fabric, ports)))
        assert arrived.transition and arrived.transition.way is Way.DIRECT
        if ports is not NEW:
            place.now += later
    assert place.slept == slept


def test_what_is_safe_with_three_tables_waits_for_nothing(place: Place) -> None:
    place.fake.head_of_queue = HOQ
    for ports in ([2, 4, 4], OLD, [2, 4, 4]):
        place.go(place.plan(around(place.fabric, ports)))
    assert place.slept == [] and len(place.fake.loads) == 3


def test_many_tables_in_a_row_are_waited_for_in_the_end(place: Place) -> None:
    place.fake.head_of_queue = HOQ
    for number in range(8):
        place.go(place.plan(around(place.fabric, OLD if number % 2 else [2, 4, 4])))
        place.now += 0.001
    assert place.slept and len(place.recent.also(place.fabric)) <= 5


def test_installs_without_limit_are_proved_with_three_tables(place: Place) -> None:
    place.fake.head_of_queue = -1
    place.go(place.plan(around(place.fabric, [2, 4, 4])))
    place.now += 1e9
    with pytest.raises(NotSafe, match="head_of_queue_lifetime"):
        place.go(place.plan(around(place.fabric, NEW)))
    arrived = place.go(place.plan(around(place.fabric, OLD)))
    assert arrived.transition and arrived.transition.way is Way.DIRECT


def test_a_process_that_has_just_started_waits_for_what_it_does_not_know(place: Place) -> None:
    place.fake.head_of_queue, place.fake.built_at = HOQ, time.time() + 60
    place.go(place.plan(around(place.fabric, [2, 4, 4])))
    assert place.slept == [3 * HOQ]


@pytest.mark.parametrize(("ago", "waits"), [(60, True), (-60, False)])
def test_a_fallback_that_was_not_asked_for_counts_as_a_table_before(
    place: Place, ago: float, waits: bool
) -> None:
    place.fake.head_of_queue = HOQ
    place.transit.read(place.fabric)
    place.fake.tables = routes_to_file(place.fabric, around(place.fabric, [2, 4, 4]), 1)
    place.fake.built_at = time.time() + ago
    place.go(place.plan(around(place.fabric, NEW)))
    assert bool(place.slept) is waits and place.slept in ([3 * HOQ], [])


def test_a_history_of_an_older_agent_is_read_and_gone_on_with(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.add(ROW)
    with sqlite3.connect(history.path) as base:
        for column in ("transition", "blocks_changed", "sl2vl_tables"):
            base.execute(f"ALTER TABLE decisions DROP COLUMN {column}")
    assert history.last(1) == [ROW]
    history.add(ROW)
    assert history.last(9) == [ROW, ROW]


def test_routes_on_a_single_switch_have_no_hops() -> None:
    """What remains of a fabric beside the master's OpenSM, when its leaf switch is cut off."""
    fabric = load_fabric("xgft:1;4;1")
    routes = load_engine("minhop").route(fabric, JobMix(()), Options())
    assert not longest_way(fabric, routes).any()
