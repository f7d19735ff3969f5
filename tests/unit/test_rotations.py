"""The rotated template: even loads where a leaf's hosts are no multiple of its ways up."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.bounds import bounds_of
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.engine import PreviousRoutes
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.rotations import rotations
from sar_agent.routing.template import template_of, templates_of


@pytest.mark.parametrize(
    "spec", ["xgft:2;12,12;1,12", "xgft:2;24,8;1,12", "xgft:3;4,4,4;1,4,4", "xgft:3;8,4,4;1,4,4"]
)
def test_where_turns_come_out_even_there_is_one_template(spec: str) -> None:
    fabric = load_fabric(spec)
    assert rotations(fabric, graph_of(fabric)) is None
    assert len(templates_of(fabric)) == 1


@pytest.mark.parametrize(("hosts", "spines", "dead"), [(16, 12, 0), (12, 12, 2), (20, 12, 0)])
def test_a_job_in_order_has_the_least_load_and_the_phases_of_d_mod_k(
    hosts: int, spines: int, dead: int
) -> None:
    fabric = load_fabric(f"xgft:2;{hosts},24;1,{spines}")
    fabric = fabric.with_switches_down(range(fabric.switches - dead, fabric.switches))
    mix = JobMix((make_job("all", range(fabric.terminals)),))
    plain, rotated = (
        traffic_of(fabric, mix, Routes("template", fabric.digest, each.egress[None]))
        for each in templates_of(fabric)
    )
    assert rotated.load.max() <= 1.02 * bounds_of(fabric, mix).load_max < plain.load.max()
    assert rotated.phase_contention[0] <= plain.phase_contention[0]
    # The engine serves all collectives.
    ours = traffic_of(fabric, mix, load_engine("sar-plus").route(fabric, mix, Options()))
    assert ours.load.max() <= 1.1 * bounds_of(fabric, mix).load_max < plain.load.max()


def test_both_templates_are_free_of_credit_loops_and_the_first_serves_without_jobs() -> None:
    fabric = load_fabric("xgft:3;5,4,3;1,4,3").with_links_down([40])
    for template in templates_of(fabric):
        routes = Routes("template", fabric.digest, template.egress[None])
        assert check_routes(fabric, routes).passed
    engine, nobody = load_engine("sar-plus"), JobMix(())
    mix = JobMix((make_job("all", range(fabric.terminals)),))
    made = engine.route(fabric, mix, Options())
    before = PreviousRoutes(fabric, mix, made)
    after = engine.reroute(before, fabric, nobody, Options())  # type: ignore[attr-defined]
    assert np.array_equal(after.egress[0], template_of(fabric).egress)
