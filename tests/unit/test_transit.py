"""Plans come into force at once, in stages, or not; and the entries of the history about it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check.proof import prove
from sar_agent.check.transition import Way
from sar_agent.errors import Unavailable
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.install.plan import Plan
from sar_agent.install.recent import longest_way
from sar_agent.install.transit import NotKnown, NotSafe, transition_to
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from tests.worlds.lane_choices import BY_PATH
from tests.worlds.rings import around, ring
from tests.worlds.transit_place import MIXED, NEW, OLD, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, around(ring(), OLD))


def test_tables_with_unsafe_mixtures_are_installed_in_stages(place: Place) -> None:
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
    plan = place.plan(routed(load_engine("sar"), fabric, JobMix(()), BY_PATH))
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
    fabric = load_fabric("xgft:2;4,4;1,3")  # where minhop's tables are others
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


def test_an_unknown_entry_is_not_a_missing_route(place: Place) -> None:
    """255 of a switch that did not answer led to `unproved`, so to an install."""
    deaf(place)
    plan = place.plan(around(place.fabric, NEW))
    with pytest.raises(NotKnown, match="not known while switches"):
        place.go(plan)
    assert place.fake.loads == [] and not place.path.exists()
    place.fake.confirm()
    assert place.go(plan).transition.way is Way.STAGED  # type: ignore[union-attr]


def test_unconfirmed_entries_take_part_in_the_proof(place: Place) -> None:
    """Switch 1 was sent OLD and may have NEW: with OLD at switch 0 that is a credit loop."""
    deaf(place, NEW[1], 1)
    with pytest.raises(NotKnown):
        place.go(place.plan(around(place.fabric, NEW)))
    assert place.fake.loads == []


HOQ = 0.5
"""Seconds at the head of a queue."""


def test_stages_wait_until_packets_of_the_tables_before_are_gone(place: Place) -> None:
    """OLD and NEW must not be mixed, and a packet that came by OLD may wait while
    both stages pass by."""
    place.fake.head_of_queue = HOQ
    arrived = place.go(place.plan(around(place.fabric, NEW)))
    assert arrived.transition and arrived.transition.drains == (False, True)
    assert place.slept == [HOQ * (2 + 1)] and place.fake.loads == [2, 3]


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


@pytest.mark.parametrize(
    ("spec", "engine"), [("xgft:3;3,3,3;1,2,2", "sar-plus"), ("torus:4x3,hosts=1", "updn")]
)
def test_a_proof_counts_the_hops_of_the_longest_route(spec: str, engine: str) -> None:
    """As `longest_way` does, which traces tables that nobody has proved."""
    whole = load_fabric(spec)
    down = np.arange(whole.terminals) > 0
    for fabric in (whole, whole.with_links_down([0]), replace(whole, terminal_up=down)):
        routes = load_engine(engine).route(fabric, JobMix(()), Options())
        proved = prove(fabric, routes)
        assert proved
        assert proved.hops in (None, int(longest_way(fabric, routes).max()))
        assert proved.hops is not None or not fabric.terminal_up.all()
