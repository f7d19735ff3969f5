"""What a job or its partition says of its traffic weighs its routes."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine


@pytest.mark.parametrize(
    ("hint", "weight"),
    [
        ("weight=0.25", 0.25), ("weight=.5", 0.5), ("weight=2", 2.0), (None, 1.0), ("ring", 1.0),
        ("weight=0", 1.0), ("weight=1e9", 1.0), ("weight=1000000", 1.0), ("weight=-1", 1.0),
    ],
)  # fmt: skip
def test_a_hint_that_makes_no_sense_is_none(hint: str | None, weight: float) -> None:
    assert JobRecord("1", ("n1",), "RUNNING", traffic=hint).weight == weight


def test_a_light_job_makes_room_for_a_heavy_one() -> None:
    """Two jobs of two hosts share the only two leaf switches; each leaf has two uplinks, and both
    jobs' routes fit on links of their own. With a third of weight 0.1, the heavy ones still do."""
    fabric = xgft_fabric("xgft:2;3,2;1,2")
    at = [np.flatnonzero(fabric.terminal_switch == leaf) for leaf in (0, 1)]
    jobs = [make_job(str(i), (at[0][i], at[1][i]), weight=0.1 if i == 2 else 1.0) for i in range(3)]
    routes = load_engine("sar-plus").route(fabric, JobMix.of(jobs), Options())
    found = measure(fabric, JobMix.of(jobs), routes)
    assert found.load_max == pytest.approx(1.1)
    even = JobMix.of(make_job(job.id, job.terminals) for job in jobs)
    assert JobMix.of(jobs) != even
    assert JobMix.of(jobs).digest(fabric) != even.digest(fabric)
    assert measure(fabric, even, routes).load_max == pytest.approx(2.0)


def test_records_carry_their_weight_to_the_demand() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    hosts = (fabric.terminal_host[0], fabric.terminal_host[5])
    mix = mix_of_records(fabric, [JobRecord("7", hosts, "RUNNING", traffic="weight=0.5")]).mix
    assert mix.jobs[0].weight == 0.5
    assert route_demand(fabric, mix).tolist() == [0.5 * float(fabric.terminal_rate[0])]
