"""Plans on fabrics that need lanes: kept while they do, laid anew where they do not."""

from __future__ import annotations

import pytest

from sar_agent.agent import planner
from sar_agent.agent.planner import Planner
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import Plan
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, load_engine

DRAGONFLY = load_fabric("dragonfly:a=4,p=2,h=2")


def planner_of(**settings: object) -> Planner:
    config = Config(agent=AgentConfig(**settings))  # type: ignore[arg-type]
    return Planner(config, load_engine("sar-plus"))


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Engines whose routes got new lanes."""
    found: list[str] = []
    with_lanes = planner.with_lanes

    def counted(routes: Routes, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        found.append(routes.engine)
        return with_lanes(routes, fabric, mix, options)

    monkeypatch.setattr(planner, "with_lanes", counted)
    return found


def changed(plans: Planner, fabric: Fabric) -> list[Plan]:
    made: list[Plan] = []
    for n in range(1, 4):
        made.append(plans.plan(n, fabric, synthetic_mix(fabric, n), made[-1] if made else None))
    return made


def test_every_plan_is_proved_and_lanes_are_kept_where_jobs_stay(laid: list[str]) -> None:
    plans = planner_of(lanes="path")
    for plan in changed(plans, DRAGONFLY):
        assert plan.verdict.passed and 1 < plan.routes.virtual_lanes <= 8
    assert laid
    laid.clear()
    again = plans.plan(4, DRAGONFLY, plan.mix, plan)
    assert not laid
    assert again.routes.service_level is not None and plan.routes.service_level is not None
    assert (again.routes.service_level == plan.routes.service_level).all()


def test_lanes_hop_by_hop_stay_whatever_jobs_do(laid: list[str]) -> None:
    plans = planner_of()
    first, *others = changed(plans, DRAGONFLY)
    assert first.routes.hop_lane is not None and first.verdict.hop_by_hop
    assert laid == ["sar-plus", *(plan.routes.engine for plan in others)]
    for plan in others:
        assert plan.routes.digest == first.routes.digest
        assert plan.routes.jobs_digest == plan.mix.digest(DRAGONFLY)


def test_a_cable_less(laid: list[str]) -> None:
    plans = planner_of()
    mix = synthetic_mix(DRAGONFLY, 1)
    plan = plans.plan(1, DRAGONFLY, mix)
    for cable in (0, 30, 77):
        cut = DRAGONFLY.with_links_down([cable])
        plan = plans.plan(2, cut, mix, plan)
        assert plan.verdict.passed


def test_a_line_that_becomes_a_ring_gets_lanes(laid: list[str]) -> None:
    fabric = load_fabric("torus:5")
    plans = planner_of()
    one = fabric.with_links_down([0])
    line = plans.plan(1, one, synthetic_mix(fabric, 1))
    assert line.routes.virtual_lanes == 1
    assert plans.plan(2, fabric, synthetic_mix(fabric, 1), line).routes.virtual_lanes == 2


def test_lanes_run_out() -> None:
    mix = synthetic_mix(DRAGONFLY, 1)
    with pytest.raises(Unserved, match="and there are 1; allow more"):
        planner_of(max_lanes=1).plan(1, DRAGONFLY, mix)
    plans = planner_of(max_lanes=1, best_effort=True)
    plan = None
    for n in (1, 2):  # tables that are not the engine's are nothing to start from
        plan = plans.plan(n, DRAGONFLY, synthetic_mix(DRAGONFLY, n), plan)
        assert plan.routes.engine == "sar-plus+updn" and plan.verdict.passed
