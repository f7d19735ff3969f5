"""Trees as sites grow them: one lane where it costs next to nothing, and it stays one."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_agent.routing.channel_dependencies import (
    close_no_loop,
    empty_dependencies,
    host_dependencies,
)
from sar_agent.routing.dfsssp import dfsssp_order
from sar_agent.routing.engine import PreviousRoutes
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.root_sets import joining_order
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.routing.turn_order import _examine, turn_order
from sar_agent.routing.updown_paths import new_row, orient, unreached_leaves
from sar_agent.routing.weighted_trees import grow
from tests.odd_trees import site

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


@pytest.mark.parametrize("spec", ["odd", "xgft:2;2,70;1,2", "torus:3x4"])
def test_every_dependency_of_kept_paths_is_marked(spec: str) -> None:
    """Also behind a switch with more than 64 channels to others."""
    fabric = odd_tree() if spec == "odd" else load_fabric(spec)
    graph, leaves = graph_of(fabric), fabric.leaves.astype(np.uint32)
    place = np.random.default_rng(1).permutation(fabric.switches).astype(np.int32)
    cache, marked = new_cache(fabric, place), empty_dependencies(fabric, 1)[0]
    _examine(graph, cache, leaves, np.zeros(fabric.switches, np.int64), marked)
    expected = np.zeros_like(marked)
    for root in leaves.tolist():
        row = cache.slot[root]
        start, edge = cache.start[row].tolist(), cache.edge[row].tolist()
        switches = cache.order[row, : cache.size[row]].tolist()
        ways = {v: edge[start[i] : start[i + 1]] for i, v in enumerate(switches)}
        passed = set(leaves.tolist())
        for v in reversed(switches):
            for c in ways[v] if v in passed else []:
                w = int(graph.target[c])
                passed.add(w)
                for then in ways[w]:
                    expected[c, then - int(graph.offset[w])] = PRESENT
    assert (expected == PRESENT).any()
    assert np.array_equal(marked == PRESENT, expected == PRESENT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [1, 7])
def test_one_lane_where_free_choice_needs_two(engine: str, seed: int) -> None:
    fabric = odd_tree(seed)
    assert free_choice_closes_a_loop(fabric)
    routes = load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())
    verdict = check_routes(fabric, routes)
    assert verdict.passed and verdict.virtual_lanes == 1


def test_one_lane_costs_sar_plus_no_load() -> None:
    fabric = odd_tree()
    mix = synthetic_mix(fabric, 1)
    found = measure(fabric, mix, load_engine("sar-plus").route(fabric, mix, Options()))
    assert found.load_max <= 1.04 * found.lower_bound_load_max


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


def test_no_such_paths_on_a_torus_or_a_dragonfly() -> None:
    for spec in ("torus:4x4", "dragonfly:a=4,p=2,h=2"):
        fabric = load_fabric(spec)
        assert turn_order(fabric, graph_of(fabric)) is None


@pytest.mark.parametrize(
    "shape",
    [
        {"joined": True, "pods": 3, "leaves": 4, "seed": 5},
        {"rails": 4, "seed": 2},  # rails meet at storage leaves only
        {"rails": 4, "storage": 0, "bridges": 2, "seed": 3},
        {
            "rails": 3,
            "leaves": 4,
            "spines": 2,
            "cores": 4,
            "hosts": 3,
            "storage": 3,
            "bridges": 2,
            "management": 0,
            "seed": 6,
        },  # a third of the hosts are nearer to the cores, or farther
    ],
)
def test_updn_turns_not_everything_around_one_switch_for_a_few_pairs(shape: dict[str, Any]) -> None:
    fabric = site(**shape)
    mix = synthetic_mix(fabric, 1)
    routes = load_engine("updn").route(fabric, mix, Options())
    assert check_routes(fabric, routes).passed
    found = measure(fabric, mix, routes)
    assert found.load_max <= 2 * found.lower_bound_load_max


def test_leaf_switches_that_share_no_root_get_one() -> None:
    fabric = site(joined=True, pods=3, cores=6, storage=3, management=0, seed=5)
    graph, leaves = graph_of(fabric), fabric.leaves.astype(np.uint32)
    legal = orient(fabric, tree_levels(fabric))
    assert unreached_leaves(graph, legal, new_row(fabric), leaves)[0] >= 0, "storage leaves"
    order = joining_order(fabric, tree_levels(fabric))
    legal = orient(fabric, order)
    assert unreached_leaves(graph, legal, new_row(fabric), leaves)[0] < 0
    plain = np.lexsort((fabric.switch_guid, tree_levels(fabric)))
    lifted = [s for s in np.argsort(order).tolist() if order[s] >= fabric.switches]
    assert 0 < len(lifted) <= 3
    rest = [s for s in np.argsort(order).tolist() if s not in lifted]
    assert rest == [s for s in plain.tolist() if s not in lifted], "all others keep their order"


def test_the_weights_are_the_routes_over_each_channel() -> None:
    """By which dfsssp, which knows no jobs, compares its choices."""
    fabric = load_fabric("xgft:2;4,4;1,2")
    switch = fabric.terminal_switch
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    weight = np.zeros(fabric.channels, np.int64)
    everyone = dfsssp_order(fabric)
    grow(fabric, graph_of(fabric), new_cache(fabric), JobMix(()), *everyone, weight, egress)
    places = zip(fabric.channel_source.tolist(), fabric.channel_port.tolist(), strict=True)
    channel = {place: c for c, place in enumerate(places)}
    routes = np.zeros_like(weight)
    for d in range(fabric.terminals):
        for source in range(fabric.terminals):
            at = int(switch[source])
            while at != switch[d]:
                c = channel[at, int(egress[d, at])]
                routes[c] += 1
                at = int(fabric.channel_target[c])
    assert routes.max() and (weight == routes).all()
