"""`colored` against its bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_agent.routing.keys.digits import flow_digits
from sar_lab.fluid.path_routes import PathRoutes
from sar_lab.research.engines.by_source import contention, phases
from tests.examples import examples

KARY = ("xgft:2;4,4;1,4", "xgft:3;3,3,3;1,3,3", "xgft:3;4,4,2;1,4,4", "xgft:4;2,2,2,2;1,2,2,2")


def coloured(spec: str, source: np.ndarray, target: np.ndarray) -> PathRoutes:
    fabric = load_fabric(spec)
    view = recognise_xgft(fabric)
    digits = flow_digits(
        fabric, view, source, target, np.zeros(len(source), np.int32), merged=False
    )
    return PathRoutes("colored", fabric, view, lambda s, d: digits)


@examples(150)
@given(spec=st.sampled_from(KARY), random=st.randoms(use_true_random=False))
def test_permutations_on_k_ary_n_trees_meet_nowhere(spec: str, random) -> None:
    hosts = np.arange(load_fabric(spec).terminals, dtype=np.int32)
    target = np.array(random.sample(hosts.tolist(), len(hosts)), np.int32)
    other = hosts != target
    if not other.any():
        return
    found = contention(coloured(spec, hosts[other], target[other]), hosts[other], target[other])
    assert found.flows <= 1


def test_the_engine_routes_all_phases_of_all_jobs() -> None:
    fabric = load_fabric("xgft:2;4,4;1,4")
    mix = JobMix.of([make_job("a", range(0, 16, 2)), make_job("b", range(1, 16, 2))])
    engine = load_engine("colored")
    with pytest.raises(InputError, match="try --pattern"):
        engine.route(fabric, mix, Options(lmc=2))
    with pytest.raises(Unserved, match="needs 4 LID offsets"):
        engine.route(fabric, mix, Options(pattern="shift:3", lmc=1))
    options = Options(pattern="shift:3", lmc=2)
    routes = engine.route(fabric, mix, options)
    assert routes.egress.shape[0] == 4 and check_routes(fabric, routes).passed
    paths = engine.paths(fabric, mix, options)  # type: ignore[attr-defined]
    [(source, target)] = phases(fabric, mix, "shift:3")
    assert len(source) == 16 and contention(paths, source, target) == (1, 1)
