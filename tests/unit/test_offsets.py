"""LID offsets: the engine's routes, the shelter, keys, in one set of tables and in plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.planner import Planner
from sar_agent.check.transition import Way
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import make_plan
from sar_agent.install.transit import transition_to
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.opensm.plugin_install import put_in_force, read_in_force
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lid_offsets import KeyRows, base_of, stack
from tests.worlds.fake_opensm import FakeBridge

TREE = replace(load_fabric("xgft:2;4,4;1,4"), lmc=2)


def routes_of(engine: str, fabric: Fabric = TREE) -> Routes:
    return load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())


def planner_of(**settings: object) -> Planner:
    config = Config(agent=AgentConfig(**settings))  # type: ignore[arg-type]
    return Planner(config, load_engine("sar-plus"))


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
    plan = planner_of().plan(1, fabric, synthetic_mix(fabric, 1))
    assert plan.routes.hop_lane is not None
    with pytest.raises(InputError, match="hop by hop"):
        stack(base_of(plan.routes), routes_of("updn", fabric), 1)
    plan = planner_of().plan(1, replace(fabric, lmc=1), plan.mix)
    assert (plan.routes.egress[0] == plan.routes.egress[1]).all()


def test_without_a_lane_of_its_own_it_shares_one_where_that_closes_no_circle() -> None:
    plan = planner_of(reserve_lane=False).plan(1, TREE, synthetic_mix(TREE, 1))
    assert plan.routes.virtual_lanes == 1
    hosts = slice(TREE.terminals)
    assert (plan.routes.egress[1, hosts] == routes_of("updn").egress[0, hosts]).all()
    ring = replace(load_fabric("torus:5,hosts=1"), lmc=1)
    plan = planner_of(reserve_lane=False, lanes="path").plan(1, ring, synthetic_mix(ring, 1))
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
