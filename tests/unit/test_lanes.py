"""Lanes on fabrics where the right answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric.spec import load_fabric
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import lane_budget, routed
from sar_agent.routing.lanes.grid import grid_of


def laid(spec: str, engine: str = "dfsssp", **options: object) -> Routes:
    fabric = load_fabric(spec)
    given = Options(lanes="path", **options)  # type: ignore[arg-type]
    return routed(load_engine(engine), fabric, synthetic_mix(fabric, 1), given)


def test_a_tree_with_cables_missing_takes_one_lane() -> None:
    tree = load_fabric("xgft:3;6,6,6;1,6,6")
    for seed in range(5):
        cables = np.flatnonzero(np.arange(tree.channels) < tree.channel_reverse)
        cut = np.random.default_rng(seed).choice(cables, len(cables) // 20, replace=False)
        fabric = tree.with_links_down(cut)
        routes = routed(load_engine("sar"), fabric, synthetic_mix(fabric, 1), Options(lanes="path"))
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


def test_a_large_torus_is_routed_dimension_by_dimension() -> None:
    routes = laid("torus:8x8x8")
    assert routes.engine == "dfsssp+dimensions" and routes.virtual_lanes <= 5
    assert "dimension-ordered: the engine's own routes need" in routes.remarks[0]
    assert check_routes(load_fabric("torus:8x8x8"), routes).passed


@pytest.mark.long
def test_lanes_run_out_in_one_sentence() -> None:
    with pytest.raises(Unserved, match="4 virtual lanes are needed to avoid credit loops"):
        laid("torus:8x8x8", max_lanes=2)
    routes = laid("torus:8x8x8", max_lanes=2, best_effort=True)
    assert routes.engine == "dfsssp+updn" and routes.virtual_lanes == 2
    assert "paths are Up*/Down* paths in the last virtual lane" in routes.remarks[0]


def test_budgets() -> None:
    fabric = load_fabric("torus:5")
    assert lane_budget(fabric, Options(lanes="path")) == 8
    assert lane_budget(replace(fabric, lmc=1), Options(lanes="path")) == 7
    assert lane_budget(replace(fabric, lmc=1), Options(lanes="path", reserve_lane=False)) == 8
    for lanes in (0, 16):
        with pytest.raises(InputError, match="give 1 to 15"):
            lane_budget(fabric, Options(lanes="path", max_lanes=lanes))


@pytest.mark.parametrize(
    ("spec", "dims"),
    [
        ("torus:5", [5]),
        ("torus:3x5,hosts=2", [3, 5]),
        ("torus:4x6", [2, 2, 6]),
        ("torus:2x2x7", [2, 2, 7]),
        ("torus:8x8x8", [8, 8, 8]),
        ("dragonfly:a=4,p=2,h=2", None),
        ("xgft:2;4,4;1,4", None),
        ("dragonfly:a=5,p=1,h=1,g=1", None),
    ],
)
def test_tori_are_recognised(spec: str, dims: list[int] | None) -> None:
    found = grid_of(load_fabric(spec))
    assert (found and sorted(found.dims)) == dims
