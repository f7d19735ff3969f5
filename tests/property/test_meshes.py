"""Dragonflies: groups found by cables alone, routes local, global, local, two lanes hop by hop."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.lanes.dragonfly_groups import dragonfly_groups_of, local_global_local
from sar_agent.routing.routes import Routes

SPECS = ("dragonfly:a=4,p=2,h=2", "dragonfly:a=6,p=1,h=3", "dragonfly:a=5,p=1,h=2,g=4")


def shuffled(whole: Fabric, seed: int) -> Fabric:
    """The same cables between switches of another order and other names."""
    random = np.random.default_rng(seed)
    place = random.permutation(whole.switches)
    builder = FabricBuilder("shuffled")
    order = np.argsort(place)
    for n in range(whole.switches):
        builder.add_switch(10_000 + int(random.integers(1000)) * 1000 + n, f"x{n}", 64)
    used = np.zeros(whole.switches, int)

    def port(switch: int) -> int:
        used[switch] += 1
        return int(used[switch])

    for c in random.permutation(whole.channels):
        if c < whole.channel_reverse[c]:
            a, b = (int(place[e[c]]) for e in (whole.channel_source, whole.channel_target))
            builder.add_link(a, port(a), b, port(b))
    for t in range(whole.terminals):
        at = int(place[whole.terminal_switch[t]])
        builder.add_terminal(10**7 + t, f"h{t} HCA-1", f"h{t}", at, port(at))
    assert len(order) == whole.switches
    return builder.build()


@pytest.mark.parametrize("spec", SPECS)
def test_groups_are_found_and_two_lanes_do(spec: str) -> None:
    for seed in range(4):
        fabric = shuffled(load_fabric(spec), seed)
        dragonfly = dragonfly_groups_of(fabric)
        assert dragonfly
        size = int(spec.split("a=")[1].split(",")[0])
        assert set(np.bincount(dragonfly.group).tolist()) == {size}
        egress = local_global_local(fabric, dragonfly)
        paths = Routes("test", fabric.digest, egress[None]).next_channel(fabric)
        for d in range(0, fabric.destinations, 3):
            root = int(fabric.destination_switch[d])
            for s in range(fabric.switches):
                way = []
                while s != root:
                    c = int(paths[d, s])
                    a, s = int(fabric.channel_source[c]), int(fabric.channel_target[c])
                    way.append("g" if dragonfly.group[a] != dragonfly.group[s] else "l")
                assert "".join(way) in {"", "l", "g", "lg", "gl", "lgl"}
        routes = routed(load_engine("dfsssp"), fabric, JobMix(()), Options())
        verdict = check_routes(fabric, routes)
        assert verdict.passed and routes.virtual_lanes <= 3
        assert not routes.needs_host_levels


@pytest.mark.parametrize(
    "spec", ["xgft:2;4,4;1,2", "torus:4x4", "torus:5", "xgft:3;2,2,2;1,2,2", "xgft:1;4;1"]
)
def test_other_fabrics_are_no_dragonfly(spec: str) -> None:
    assert dragonfly_groups_of(load_fabric(spec)) is None


def test_a_group_without_one_cable_is_none() -> None:
    whole = load_fabric("dragonfly:a=4,p=1,h=2")
    local = next(
        c for c in range(whole.channels)
        if whole.switch_name[whole.channel_source[c]].split("-")[0]
        == whole.switch_name[whole.channel_target[c]].split("-")[0]
    )  # fmt: skip
    assert dragonfly_groups_of(whole.with_links_down([local])) is None
