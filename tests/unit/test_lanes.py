"""Lanes on fabrics where the right answer is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import assign_lanes, lane_budget, routed
from tests.worlds.lane_choices import BY_PATH


def laid(spec: str, engine: str = "dfsssp", **options: object) -> Routes:
    fabric = load_fabric(spec)
    given = replace(BY_PATH, **options)  # type: ignore[arg-type]
    return routed(load_engine(engine), fabric, synthetic_mix(fabric, 1), given)


def test_a_tree_with_cables_missing_takes_one_lane() -> None:
    tree = load_fabric("xgft:3;6,6,6;1,6,6")
    for seed in range(5):
        cables = np.flatnonzero(np.arange(tree.channels) < tree.channel_reverse)
        cut = np.random.default_rng(seed).choice(cables, len(cables) // 20, replace=False)
        fabric = tree.with_links_down(cut)
        routes = routed(load_engine("sar"), fabric, synthetic_mix(fabric, 1), BY_PATH)
        assert routes.virtual_lanes == 1 and routes.service_level is None
        assert check_routes(fabric, routes).passed


@pytest.mark.parametrize(
    ("spec", "most"), [("torus:5", 2), ("dragonfly:a=4,p=2,h=2", 3), ("torus:8x8,hosts=2", 5)]
)
def test_few_lanes(spec: str, most: int) -> None:
    routes = laid(spec)
    verdict = check_routes(load_fabric(spec), routes)
    assert routes.virtual_lanes <= most
    assert verdict.passed and verdict.deadlock_free_everyone


def test_lanes_run_out_in_one_sentence() -> None:
    with pytest.raises(Unserved) as refused:
        laid("torus:4x5,hosts=2", max_lanes=2)
    said = r"dfsssp: \d+ virtual lanes are needed to avoid credit loops by path, not 2; its routes "
    said += r".*load a link up to \S+, its own up to \S+, not at most 1.3 times; the tables "
    assert re.match(said, str(refused.value))
    routes = laid("torus:4x5,hosts=2", max_lanes=2, best_effort=True)
    assert routes.engine == "dfsssp+updn" and routes.virtual_lanes == 1
    assert "Up*/Down* paths in one lane load a link up to" in routes.remarks[0]


def test_lanes_by_path_only_where_the_site_says_that_hosts_ask() -> None:
    fabric = load_fabric("dragonfly:a=4,p=2,h=2")
    mix = synthetic_mix(fabric, 1)
    for options in (Options(), Options(hosts_use_path_records=True)):
        with pytest.raises(Unserved, match=r"sar: its routes close .* larger max_lanes allows"):
            routed(load_engine("sar"), fabric, mix, options)
    hops = routed(load_engine("sar"), fabric, mix, Options(max_lanes=3))
    assert hops.hop_lane is not None and not hops.needs_host_levels
    assert hops.lanes_in_words == f"{hops.virtual_lanes}, hop by hop: hosts need no change"
    assert check_routes(fabric, hops).passed
    paths = routed(load_engine("sar"), fabric, mix, BY_PATH)
    assert paths.needs_host_levels and "hosts must take the service level" in paths.lanes_in_words


def test_a_forwarding_loop_is_left_to_the_check() -> None:
    fabric = load_fabric("torus:5")
    routes = load_engine("dfsssp").route(fabric, JobMix(()), Options())
    egress = routes.egress.copy()
    root = int(fabric.terminal_switch[0])
    egress[0, 0, np.arange(5) != root] = fabric.channel_port[fabric.channel_offset[:5]][
        np.arange(5) != root
    ]
    for turn in range(2):  # one of the two ways around never arrives
        cut = int(fabric.channel_source[fabric.channel_target == root][turn])
        egress[0, 0, cut] = next(
            int(fabric.channel_port[c])
            for c in range(*fabric.channel_offset[cut : cut + 2])
            if fabric.channel_target[c] != root
        )
    looped = assign_lanes(fabric, replace(routes, egress=egress), Options())
    assert looped.engine == "dfsssp" and check_routes(fabric, looped).unreachable_pairs > 0


def test_budgets() -> None:
    fabric = load_fabric("torus:5")
    assert lane_budget(fabric, BY_PATH) == 8
    assert lane_budget(replace(fabric, lmc=1), BY_PATH) == 7
    assert lane_budget(replace(fabric, lmc=1), replace(BY_PATH, reserve_lane=False)) == 8
    for lanes in (0, 16):
        with pytest.raises(InputError, match="give 1 to 15"):
            lane_budget(fabric, replace(BY_PATH, max_lanes=lanes))
