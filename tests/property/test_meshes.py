"""HyperX: recognised by cables alone, and routed without credit loops."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.research.engines.hyperx_routes import half_of
from sar_lab.research.engines.hyperx_view import recognise_hyperx
from tests.examples import examples
from tests.worlds.lane_choices import BY_PATH
from tests.worlds.oracles import has_credit_loop, path

NOBODY = JobMix(())


@st.composite
def specs(draw: st.DrawFn, least: int = 1, most: int = 3) -> str:
    dims = [
        draw(st.integers(2, {1: 7, 2: 5, 3: 3}[most]))
        for _ in range(draw(st.integers(least, most)))
    ]
    hosts, cables = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return f"hyperx:{'x'.join(map(str, dims))},hosts={hosts},cables={cables}"


def dor(fabric: Fabric) -> Routes:
    return load_engine("dor").route(fabric, NOBODY, Options())


def differ(fabric: Fabric, a: int, b: int) -> int:
    """Coordinates that differ, by the generator's names."""
    places = [fabric.switch_name[s][1:].split("-") for s in (a, b)]
    return sum(x != y for x, y in zip(*places, strict=True))


@examples(40)
@given(spec=specs())
def test_dor_takes_one_hop_a_dimension_in_one_order_and_one_lane(spec: str) -> None:
    fabric = load_fabric(spec)
    routes, view = dor(fabric), recognise_hyperx(fabric)
    assert prod(view.dims) == fabric.switches
    assert sorted(view.dims) == sorted(int(k) for k in spec[7:].split(",")[0].split("x"))
    verdict = check_routes(fabric, routes)
    assert verdict.passed and verdict.deadlock_free_everyone and routes.virtual_lanes == 1
    assert not has_credit_loop(fabric, routes)
    for s in range(fabric.switches):
        for d in range(fabric.destinations):
            way = path(fabric, routes, s, d)
            assert way is not None
            assert len(way) == differ(fabric, s, int(fabric.destination_switch[d]))
            ends = [(int(fabric.channel_source[c]), int(fabric.channel_target[c])) for c in way]
            axes = [int(np.argmax(view.coordinate[a] != view.coordinate[b])) for a, b in ends]
            assert axes == sorted(axes)


@examples(30)
@given(spec=specs(), random=st.randoms(use_true_random=False))
def test_dor_lives_on_one_cable_of_two_and_refuses_a_pair_without_any(
    spec: str, random: Random
) -> None:
    fabric = load_fabric(spec.rpartition("=")[0] + "=2")
    pairs = random.sample(range(fabric.channels), random.randint(1, fabric.channels // 2))
    ends = {}
    for c in pairs:
        ends[frozenset((int(fabric.channel_source[c]), int(fabric.channel_target[c])))] = c
    hurt = fabric.with_links_down(ends.values())
    assert check_routes(hurt, dor(hurt)).passed
    both, c = next(iter(ends.items()))
    a, b = both
    every = [
        x
        for x in range(fabric.channels)
        if {int(fabric.channel_source[x]), int(fabric.channel_target[x])} == {a, b}
    ]
    with pytest.raises(Unserved, match=r"is not a HyperX.*sar-plus"):
        dor(fabric.with_links_down(every))


@pytest.mark.parametrize(
    "spec", ["torus:5", "torus:4x5", "xgft:2;4,4;1,2", "dragonfly:a=3,p=1,h=1"]
)
def test_other_networks_are_refused(spec: str) -> None:
    with pytest.raises(Unserved, match="is not a HyperX: switch"):
        dor(load_fabric(spec))


@examples(30)
@example(spec="hyperx:4x4,hosts=3,cables=2", seed=1)  # a cycle of pairs with a way in at each
@given(spec=specs(2, 2), seed=st.integers(0, 99))
def test_parx_is_deadlock_free_and_leads_around_one_half_in_each_table(
    spec: str, seed: int
) -> None:
    fabric = load_fabric(spec)
    mix, options = synthetic_mix(fabric, seed), replace(BY_PATH, lmc=2)
    engine = load_engine("parx")
    plain = engine.route(fabric, mix, options)
    assert plain.egress.shape[0] == 4 and plain.jobs_digest == mix.digest(fabric)
    assert np.array_equal(plain.egress, engine.route(fabric, mix, options).egress)
    routes = routed(engine, fabric, mix, options)
    assert check_routes(fabric, routes).passed
    view = recognise_hyperx(fabric)
    halves = half_of(view)
    for o in range(4):
        table = Routes("one", fabric.digest, plain.egress[o : o + 1])
        for s in range(fabric.switches):
            for d in range(fabric.terminals):
                root = int(fabric.destination_switch[d])
                way = path(fabric, table, s, d)
                assert way is not None
                if halves[o, s] and halves[o, root]:
                    assert s == root or len(way) > 1
                else:
                    assert len(way) == differ(fabric, s, root)
                for c in way:
                    ends = fabric.channel_source[c], fabric.channel_target[c]
                    assert not (halves[o, ends[0]] and halves[o, ends[1]])


@pytest.mark.parametrize(
    ("spec", "lmc", "what"),
    [
        ("hyperx:4x4", 0, "needs an LMC of 2"),
        ("hyperx:3x3x3", 2, "3 dimensions"),
        ("torus:5", 2, "HyperX"),
    ],
)
def test_parx_says_what_it_does_not_serve(spec: str, lmc: int, what: str) -> None:
    with pytest.raises(Unserved, match=what):
        load_engine("parx").route(load_fabric(spec), NOBODY, Options(lmc=lmc))
