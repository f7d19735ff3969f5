"""Weights of jobs and partitions in the routes."""

from __future__ import annotations

import pytest

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs.demand import route_demand
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.record import JobRecord


@pytest.mark.parametrize(
    ("hint", "weight"),
    [
        ("weight=0.25", 0.25), ("weight=.5", 0.5), ("weight=2", 2.0), (None, 1.0), ("ring", 1.0),
        ("weight=0", 1.0), ("weight=1e9", 1.0), ("weight=1000000", 1.0), ("weight=-1", 1.0),
    ],
)  # fmt: skip
def test_a_hint_that_makes_no_sense_is_none(hint: str | None, weight: float) -> None:
    assert JobRecord("1", ("n1",), "RUNNING", traffic=hint).weight == weight


def test_records_carry_their_weight_to_the_demand() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    hosts = (fabric.terminal_host[0], fabric.terminal_host[5])
    mix = mix_of_records(fabric, [JobRecord("7", hosts, "RUNNING", traffic="weight=0.5")]).mix
    assert mix.jobs[0].weight == 0.5
    assert route_demand(fabric, mix).tolist() == [0.5 * float(fabric.terminal_rate[0])]
