"""`ark`, `nrk` and keys on real-life trees; what they say where they cannot serve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.engine import PreviousRoutes, Rerouting
from sar_agent.routing.keys import choose_shift, key_tree, make_key, unshifted
from tests.worlds.key_flows import most, permutation

TREE = load_fabric("xgft:3;4,4,4;1,4,4")
JOBS = [
    make_job("ring", range(0, 64, 3), "ring"),
    make_job("grid", range(1, 49, 3), "stencil2d:4x4"),
    make_job("bits", range(2, 26, 3), "butterfly"),
    make_job("quiet", range(50, 64, 3), "weight=0.5"),
    make_job("odd", range(26, 48, 3), "transpose"),
]
MIX = JobMix.of(JOBS)


def route(engine: str, fabric: Fabric = TREE, mix: JobMix = MIX, pattern: str = "") -> Routes:
    return load_engine(engine).route(fabric, mix, Options(pattern=pattern))


def rows_that_differ(a: Routes, b: Routes) -> set[int]:
    return set(np.flatnonzero((a.egress[0] != b.egress[0]).any(axis=1)).tolist())


@pytest.mark.parametrize(("engine", "together"), [("ark", 3), ("nrk", 2)])
def test_jobs_that_say_what_they_send_get_keys(engine: str, together: int) -> None:
    routes = route(engine)
    assert check_routes(TREE, routes).passed and routes.virtual_lanes == 1
    assert routes.remarks == (
        "job odd gets no key: transpose needs a square number of ranks, the job has 8",
        "3 of 5 jobs have a routing key; 3 of them have at most one flow on each link; all jobs "
        f"together have at most {together}",
    )
    keyed = {t for job in JOBS[:3] for t in job.terminals.tolist()}
    assert rows_that_differ(routes, route("dmodk")) <= keyed


def test_a_pattern_for_all_jobs() -> None:
    routes = route("nrk", pattern="shift:1")
    assert check_routes(TREE, routes).passed
    assert "5 of 5 jobs" in routes.remarks[0]
    with pytest.raises(InputError, match="job odd: a grid of 4x4 needs 16 ranks, the job has 8"):
        route("nrk", mix=JobMix.of(JOBS[4:]), pattern="stencil2d:4x4")


def test_without_a_pattern_there_is_no_key() -> None:
    mix = JobMix.of([replace(JOBS[0], traffic=None)])
    routes = route("nrk", mix=mix)
    assert not rows_that_differ(routes, route("dmodk"))
    assert routes.remarks == ("no job names its traffic, so there are no routing keys",)


def test_nrk_leaves_the_keys_of_running_jobs_alone() -> None:
    engine = load_engine("nrk")
    assert isinstance(engine, Rerouting)
    options = Options()
    first = engine.route(TREE, JobMix.of(JOBS[:2]), options)
    before = PreviousRoutes(TREE, JobMix.of(JOBS[:2]), first)
    more = engine.reroute(before, TREE, JobMix.of(JOBS[:3]), options)
    assert rows_that_differ(first, more) <= set(JOBS[2].terminals.tolist())
    assert rows_that_differ(first, more)
    less = engine.reroute(
        PreviousRoutes(TREE, JobMix.of(JOBS[:3]), more), TREE, JobMix.of(JOBS[2:3]), options
    )
    gone = {t for job in JOBS[:2] for t in job.terminals.tolist()}
    assert rows_that_differ(more, less) <= gone
    other = JobMix.of([replace(JOBS[0], traffic="shift:5"), JOBS[1]])
    said = engine.reroute(before, TREE, other, options)
    assert rows_that_differ(first, said) <= set(JOBS[0].terminals.tolist())
    assert rows_that_differ(first, said)


@pytest.mark.parametrize("spec", ["xgft:2;4,4;1,4", "xgft:3;4,4,4;1,4,4"])
def test_trees_with_broken_cables_are_served_as_well_as_may_be(spec: str) -> None:
    fabric = load_fabric(spec)
    random = np.random.default_rng(2)
    for _ in range(5):
        broken = fabric.with_links_down(random.choice(fabric.channels, 2, replace=False))
        tree = key_tree(broken)
        assert tree.view is None and "has a cable that is down" in tree.why_not
        key = make_key(tree, [permutation(random, fabric.terminals)])
        [found] = key.contention
        assert most(key) == [found.flows] and found.bound <= found.flows <= 2
        load = random.integers(0, 3, fabric.channels)
        shift = choose_shift(key, load)
        assert shift.worth <= unshifted(key, load).worth
        assert most(key, shift) == [int(shift.own.max())]
        routes = route("nrk", broken, synthetic_mix(broken, 1), "ring")
        assert check_routes(broken, routes).passed and "searched for" in routes.remarks[-1]


def test_other_fabrics_are_not_served() -> None:
    for spec in ("torus:3x3,hosts=2", "dragonfly:a=4,p=2,h=2"):
        with pytest.raises(Unserved, match=r"routing keys need a fat tree: .* is not a fat tree"):
            key_tree(load_fabric(spec))
