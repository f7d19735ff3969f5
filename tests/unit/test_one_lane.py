"""Trees as sites grow them: one lane where it costs next to nothing, and it stays one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.channel_dependencies import close_no_loop, host_dependencies
from sar_agent.routing.dfsssp import dfsssp_order
from sar_agent.routing.engine import PreviousRoutes
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.routing.weighted_trees import grow
from tests.worlds.odd_trees import site

ENGINES = ("dfsssp", "sar", "sar-plus")


def odd_tree(seed: int = 1) -> Fabric:
    return site(
        rails=4, pods=2, leaves=4, spines=3, cores=4, storage=3, joined=True, seed=seed
    )  # fmt: skip


def free_choice_closes_a_loop(fabric: Fabric) -> bool:
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    weight = np.zeros(fabric.channels, np.int64)
    everyone = dfsssp_order(fabric)
    grow(fabric, graph_of(fabric), new_cache(fabric), JobMix(()), *everyone, weight, egress)
    return not close_no_loop(fabric, host_dependencies(fabric, egress))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [1, 7])
def test_one_lane_where_free_choice_needs_two(engine: str, seed: int) -> None:
    fabric = odd_tree(seed)
    assert free_choice_closes_a_loop(fabric)
    routes = load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())
    verdict = check_routes(fabric, routes)
    assert verdict.passed and verdict.virtual_lanes == 1


def test_sar_plus_stays_in_one_lane_as_jobs_and_cables_come_and_go() -> None:
    fabric, random = odd_tree(), Random(1)
    cables = [c for c in range(fabric.channels) if c < fabric.channel_reverse[c]]
    engine = SarPlus()
    everything = synthetic_mix(fabric, 1)
    mix = JobMix.of(everything.jobs[1:])
    routes = engine.route(fabric, mix, Options())
    for step in range(6):
        if step == 3:
            engine = SarPlus()  # the agent was restarted: only the tables are known
        before = PreviousRoutes(fabric, mix, routes)
        mix = JobMix.of(mix.jobs[1:] if step % 2 else everything.jobs)
        routes = engine.reroute(before, fabric, mix, Options())
        assert check_routes(fabric, routes).passed, f"job ended, step {step}"
        before = PreviousRoutes(fabric, mix, routes)
        fabric = fabric.with_links_down(random.sample(cables, 1))
        routes = engine.reroute(before, fabric, mix, Options())
        assert check_routes(fabric, routes).unreachable_pairs == 0
        assert check_routes(fabric, routes).passed, f"cable cut, step {step}"
