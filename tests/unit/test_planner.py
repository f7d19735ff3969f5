"""Plans: their limit on changed entries, their lanes, and their LID offsets (the engine's routes,
the shelter, keys)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent import planner
from sar_agent.agent.planner import Planner
from sar_agent.check.transition import Way
from sar_agent.config.model import AgentConfig, Config
from sar_agent.config.update import UpdateConfig
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.transit import transition_to
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_install import put_in_force, read_in_force
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lid_offsets import KeyRows, base_of, stack
from tests.worlds.fake_opensm import FakeBridge

BY = {"hosts_use_path_records": True, "max_lanes": 8}
DRAGONFLY = load_fabric("dragonfly:a=4,p=2,h=2")


def planner_of(**settings: object) -> Planner:
    config = Config(agent=AgentConfig(**settings))  # type: ignore[arg-type]
    return Planner(config, load_engine("sar-plus"))


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Engines whose routes got new lanes."""
    found: list[str] = []
    with_lanes = planner.with_lanes

    def counted(routes: Routes, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        found.append(routes.engine)
        return with_lanes(routes, fabric, mix, options)

    monkeypatch.setattr(planner, "with_lanes", counted)
    return found


def changed(plans: Planner, fabric: Fabric) -> list[Plan]:
    made: list[Plan] = []
    for n in range(1, 4):
        made.append(plans.plan(n, fabric, synthetic_mix(fabric, n), made[-1] if made else None))
    return made


def test_every_plan_is_proved_and_lanes_are_kept_where_jobs_stay(laid: list[str]) -> None:
    plans = planner_of(**BY)
    for plan in changed(plans, DRAGONFLY):
        assert plan.verdict.passed and 1 < plan.routes.virtual_lanes <= 8
    assert laid
    laid.clear()
    again = plans.plan(4, DRAGONFLY, plan.mix, plan)
    assert not laid
    assert again.routes.service_level is not None and plan.routes.service_level is not None
    assert (again.routes.service_level == plan.routes.service_level).all()


def test_a_cable_less(laid: list[str]) -> None:
    plans = planner_of(**BY)
    mix = synthetic_mix(DRAGONFLY, 1)
    plan = plans.plan(1, DRAGONFLY, mix)
    for cable in (0, 30, 77):
        cut = DRAGONFLY.with_links_down([cable])
        plan = plans.plan(2, cut, mix, plan)
        assert plan.verdict.passed


def test_a_line_that_becomes_a_ring_gets_lanes(laid: list[str]) -> None:
    fabric = load_fabric("torus:5")
    plans = planner_of(**BY)
    one = fabric.with_links_down([0])
    line = plans.plan(1, one, synthetic_mix(fabric, 1))
    assert line.routes.virtual_lanes == 1
    assert plans.plan(2, fabric, synthetic_mix(fabric, 1), line).routes.virtual_lanes == 2


def test_lanes_run_out() -> None:
    mix = synthetic_mix(DRAGONFLY, 1)
    with pytest.raises(Unserved, match="A larger max_lanes allows"):
        planner_of().plan(1, DRAGONFLY, mix)
    plans = planner_of(best_effort=True)
    plan = None
    for n in (1, 2):  # tables that are not the engine's are nothing to start from
        plan = plans.plan(n, DRAGONFLY, synthetic_mix(DRAGONFLY, n), plan)
        assert plan.routes.engine == "sar-plus+updn" and plan.verdict.passed


@pytest.mark.parametrize("engine", ["sar", "sar-plus"])
def test_a_cap_on_changed_entries_holds(engine: str) -> None:
    tree = load_fabric("xgft:3;4,4,4;1,4,4")
    mixes = [synthetic_mix(tree, seed) for seed in (1, 2)]

    def second(most: int) -> int:
        config = Config(update=UpdateConfig(max_changed_entries=most))
        plans = Planner(config, load_engine(engine))
        first = plans.plan(1, tree, mixes[0])
        then = plans.plan(2, tree, mixes[1], first, capped_from=first.routes)
        return then.routes.entries_changed(first.routes)

    free = second(0)
    assert free > 50 >= second(50) and second(10 * free) == free


TREE = replace(load_fabric("xgft:2;4,4;1,4"), lmc=2)


def routes_of(engine: str, fabric: Fabric = TREE) -> Routes:
    return load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())


def key_of(routes: Routes, terminals: list[int]) -> KeyRows:
    return KeyRows(np.array(terminals, np.int32), routes.egress[0, terminals])


@pytest.mark.parametrize("esp0", [False, True])
def test_a_switch_is_led_to_by_its_first_lid_or_by_all_in_one_way(
    tmp_path: Path, esp0: bool
) -> None:
    """What the plugin installs of a plan is what the plan says, whether switches have one LID or
    as many as hosts (lmc_esp0), and whoever made the tables of several offsets."""
    base, others = routes_of("sar"), []
    for root in range(4):  # to leaf switches over one root each
        egress = base.egress.copy()
        to_leaves = egress[0, TREE.terminals : TREE.terminals + 4, :4]
        to_leaves[to_leaves != 0] = 5 + root
        others.append(replace(base, egress=egress))
    stacked = stack(base, others[2], 2)
    several = replace(base, egress=np.concatenate([one.egress for one in others]))
    switches = slice(TREE.terminals, None)
    for routes in (stacked, several):
        assert (routes.egress[1:, switches] != routes.egress[0, switches]).any()
        plan = make_plan(1, TREE, JobMix(()), routes)
        assert (plan.routes.egress[:, : TREE.terminals] == routes.egress[:, : TREE.terminals]).all()
        bridge = FakeBridge(tmp_path, TREE, lmc_esp0=esp0)
        put_in_force(bridge, plan, tmp_path / "routes.sar", None)  # type: ignore[arg-type]
        found = read_in_force(bridge, TREE).routes  # type: ignore[arg-type]
        assert found and found.digest == plan.routes.digest
        assert transition_to(plan, found).transition.way is Way.SAME  # type: ignore[union-attr]


def test_no_shelter_where_no_level_says_the_lane() -> None:
    fabric = load_fabric("dragonfly:a=4,p=2,h=2")
    plan = planner_of(max_lanes=3).plan(1, fabric, synthetic_mix(fabric, 1))
    assert plan.routes.hop_lane is not None
    with pytest.raises(InputError, match="hop by hop"):
        stack(base_of(plan.routes), routes_of("updn", fabric), 1)
    plan = planner_of(max_lanes=4).plan(1, replace(fabric, lmc=1), plan.mix)
    assert (plan.routes.egress[0] == plan.routes.egress[1]).all()


def test_without_a_lane_of_its_own_it_shares_one_where_that_closes_no_circle() -> None:
    plan = planner_of(reserve_lane=False).plan(1, TREE, synthetic_mix(TREE, 1))
    assert plan.routes.virtual_lanes == 1
    hosts = slice(TREE.terminals)
    assert (plan.routes.egress[1, hosts] == routes_of("updn").egress[0, hosts]).all()
    ring = replace(load_fabric("torus:5,hosts=1"), lmc=1)
    plan = planner_of(reserve_lane=False, **BY).plan(1, ring, synthetic_mix(ring, 1))
    assert plan.verdict.passed


def test_jobs_change_offset_0_and_nothing_else() -> None:
    plans = planner_of()
    plan = plans.plan(1, TREE, synthetic_mix(TREE, 1))
    first, second = plan.routes, plans.plan(2, TREE, synthetic_mix(TREE, 2), plan).routes
    assert (first.egress[0] != second.egress[0]).any()
    hosts = slice(TREE.terminals)
    assert (first.egress[1:, hosts] == second.egress[1:, hosts]).all()


def test_a_key_changes_its_offset_and_nothing_else() -> None:
    plans, mix = planner_of(), synthetic_mix(TREE, 1)
    first = plans.plan(1, TREE, mix)
    second = plans.plan_keys(2, {2: key_of(routes_of("dmodk"), [1, 2, 9])}, first)
    both = first.routes.egress, second.routes.egress
    assert [o for o in range(4) if (both[0][o] != both[1][o]).any()] == [2]
    assert plans.plan_keys(3, {}, second).routes.digest == first.routes.digest
