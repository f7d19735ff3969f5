"""Routes put in force, and believed only when read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.generations import Generations
from sar_agent.install.install import ReadBackDiffers, differences, put_in_force
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.routes_file import RoutesFile, read_routes_file, write_routes_file
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from tests.fake_opensm import FakeBridge
from tests.unit.routes_vectors import small_routes

FABRIC = load_fabric("xgft:2;3,3;1,2")


@pytest.fixture
def bridge(tmp_path: Path) -> FakeBridge:
    return FakeBridge(tmp_path, FABRIC)


@pytest.fixture(scope="module")
def plan() -> Plan:
    mix = JobMix.of([])
    return make_plan(5, FABRIC, mix, load_engine("dfsssp").route(FABRIC, mix, Options()))


@pytest.fixture(scope="module")
def file(plan: Plan) -> RoutesFile:
    return plan.routes_file()


def test_what_is_read_back_is_returned(bridge: FakeBridge, plan: Plan) -> None:
    found = put_in_force(bridge, plan, bridge.folder / "routes.sar")
    assert differences(plan.routes_file(), found) == 0 and bridge.generation == 5


def test_a_plan_does_not_depend_on_the_plan_before(plan: Plan) -> None:
    mix = synthetic_mix(FABRIC, 1)
    cut = FABRIC.with_links_down([0])
    for fabric, engine in ((FABRIC, "sar"), (cut, "sar"), (FABRIC, "minhop")):
        routes = load_engine(engine).route(fabric, mix, Options())
        alone, after = (
            make_plan(6, fabric, mix, routes),
            make_plan(6, fabric, mix, routes, before=plan),
        )
        assert alone.verdict == after.verdict and alone.measures.json() == after.measures.json()
        assert alone.measures.channel_load.tobytes() == after.measures.channel_load.tobytes()
        plan = after


def test_nobody_can_write_to_what_was_proved(plan: Plan) -> None:
    mix = JobMix.of([])
    routes = load_engine("dfsssp").route(FABRIC, mix, Options())
    made = make_plan(6, FABRIC, mix, routes)
    routes.egress[:] = 0
    assert made.routes.entries_changed(plan.routes) == 0
    with pytest.raises(ValueError, match="read-only"):
        made.routes.egress[0, 0, 0] = 0


def test_nobody_there_nothing_is_written(bridge: FakeBridge, plan: Plan) -> None:
    bridge.away = True
    with pytest.raises(Unavailable):
        put_in_force(bridge, plan, bridge.folder / "routes.sar")
    assert not (bridge.folder / "routes.sar").exists()


def test_a_refusal_puts_the_former_file_back(bridge: FakeBridge, plan: Plan) -> None:
    path = bridge.folder / "routes.sar"
    put_in_force(bridge, plan, path)
    bridge.refuse = ["stale"]
    with pytest.raises(SarError, match="stale"):
        put_in_force(bridge, replace(plan, generation=6), path)
    assert read_routes_file(path).generation == 5


def test_another_table_than_planned(bridge: FakeBridge, plan: Plan) -> None:
    bridge.spoil = True
    with pytest.raises(ReadBackDiffers, match="1 entries differ"):
        put_in_force(bridge, plan, bridge.folder / "routes.sar")


def test_differences_are_counted_by_guid_and_offset(file: RoutesFile) -> None:
    two = file.forwarding.repeat(2, axis=0)
    assert differences(file, replace(file, forwarding=two)) == 0, "later offsets repeat the first"
    two[1, 0, 3] = 1 + two[1, 0, 3] % 2
    assert differences(file, replace(file, forwarding=two)) == 1
    assert differences(replace(file, forwarding=two), replace(file, forwarding=two)) == 0
    fewer = replace(
        file,
        terminal_guids=file.terminal_guids[1:],
        terminal_leaf=file.terminal_leaf[1:],
        forwarding=file.forwarding[:, :, 1:],
    )
    assert differences(file, fewer) == differences(fewer, file) == 0


def test_service_levels_count() -> None:
    lanes = small_routes(lanes=2)
    assert lanes.service_levels is not None
    assert differences(lanes, lanes) == 0
    other = ((lanes.service_levels + 1) % 16).astype(np.uint8)
    wrong = differences(lanes, replace(lanes, service_levels=other))
    assert wrong == (lanes.forwarding != 0).sum(), "all but those from a switch to itself"
    assert differences(lanes, replace(lanes, service_levels=None)) == lanes.forwarding.size


def test_generations_keep_the_newest(tmp_path: Path, file: RoutesFile) -> None:
    kept = Generations(tmp_path, 3)
    assert kept.numbers() == []
    for generation in (8, 9, 10, 11):
        write_routes_file(tmp_path / "routes.sar", replace(file, generation=generation))
        kept.add(generation, tmp_path / "routes.sar")
    assert kept.numbers() == [9, 10, 11]
    with pytest.raises(InputError, match="it holds generation 11, not 12"):
        kept.add(12, tmp_path / "routes.sar")
    assert kept.read(10).generation == 10
    with pytest.raises(InputError, match=r"8\.sar"):
        kept.read(8)
