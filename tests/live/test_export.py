"""Exported files, read by ibdmchk, a checker that is not ours: it agrees with our verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import assign_lanes
from sar_agent.routing.lanes.hop import hop_lanes
from tests.worlds import grids
from tests.worlds.lane_choices import BY_PATH
from tests.worlds.live.ibdmchk import ibdmchk

pytestmark = pytest.mark.live


LANES = ("torus:5", "torus:5x3", "dragonfly:a=4,p=2,h=2", "dragonfly:a=6,p=1,h=3")


def routed(fabric: Fabric, engine: str = "sar") -> Routes:
    return load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())


def ring() -> Fabric:
    """Five switches in a circle, a host each: shortest paths in one lane close a loop."""
    text = "\n".join(
        f'Switch 4 "s{s}"\n[1] "s{(s + 1) % 5}"[2]\n[2] "s{(s - 1) % 5}"[1]\n[3] "h{s}"[1]\n\n'
        f'Hca 1 "h{s}"\n[1] "s{s}"[3]\n'
        for s in range(5)
    )
    return read_ibsim_net(text)


def laid(fabric: Fabric, engine: str, options: Options) -> Routes:
    return assign_lanes(fabric, routed(fabric, engine), options, mix=synthetic_mix(fabric, 1))


@pytest.mark.parametrize("spec", LANES)
def test_lanes_are_safe_and_needed_for_both(spec: str, tmp_path: Path) -> None:
    fabric = load_fabric(spec)
    routes = laid(fabric, "sar", BY_PATH)
    assert routes.virtual_lanes > 1 and check_routes(fabric, routes).passed
    assert "no credit loops found" in ibdmchk(fabric, routes, tmp_path)
    one = replace(routes, service_level=None, virtual_lanes=1)
    assert not check_routes(fabric, one).passed
    assert "no credit loops found" not in ibdmchk(fabric, one, tmp_path)


@pytest.mark.parametrize("name", ["ring", "torus", "dragonfly"])
def test_lanes_hop_by_hop_hold_with_all_levels_0(name: str, tmp_path: Path) -> None:
    if name == "dragonfly":
        fabric, step = grids.dragonfly(4, 2)
    else:
        sizes = (5,) if name == "ring" else (4, 5)
        fabric, step = grids.torus(sizes), grids.by_dimension(sizes)
    one = grids.routes_by(fabric, step)
    two = hop_lanes(fabric, one)
    assert two is not None and two.virtual_lanes == 2 and check_routes(fabric, two).passed
    assert "no credit loops found" in ibdmchk(fabric, two, tmp_path)
    assert (tmp_path / "psl").read_text() == ""
    assert "no credit loops found" not in ibdmchk(fabric, one, tmp_path)
