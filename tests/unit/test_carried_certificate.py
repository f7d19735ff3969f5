"""`sar-agent check` verifies the certificate that a routes file carries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check.certificate import host_planes, judge_certificate
from sar_agent.check.order import dependencies_rise
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from tests.worlds.command_line import sar_agent
from tests.worlds.lane_choices import laid_by

FABRICS = {
    "one lane": ("xgft:2;4,4;1,2", "sar-plus", "path"),
    "lanes by path": ("torus:4x3,hosts=1", "dfsssp", "path"),
    "lanes hop by hop": ("torus:4x3,hosts=1", "dfsssp", "hop"),
}


def plan_of(name: str) -> Plan:
    spec, engine, lanes = FABRICS[name]
    fabric = load_fabric(spec)
    return make_plan(1, fabric, JobMix(()), laid_by(lanes, fabric, JobMix(()), engine))


@pytest.mark.parametrize("name", FABRICS)
def test_a_certificate_is_shown_by_lane(name: str, tmp_path: Path) -> None:
    plan, spec = plan_of(name), FABRICS[name][0]
    path = tmp_path / "routes.sar"
    path.write_bytes(plan.image)
    done = sar_agent("check", "--fabric", spec, "--routes", path)
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stdout.splitlines() if line.startswith("certificate")]
    assert len(shown) == plan.routes.virtual_lanes == len(plan.numbers)
    live = int(plan.fabric.channel_up.sum())
    assert shown[0] == f"certificate, lane 0: {live} channels, the numbers rise along every path"
    done = sar_agent("check", "--fabric", spec, "--routes", tmp_path, "--json")
    found = json.loads(done.stdout)["certificate"]
    assert found["valid"] and [lane["falling"] for lane in found["lanes"]] == [0] * len(shown)

    # The order of the last lane is reversed; by hop, packets come to it from the lane before.
    worse, lane = plan.numbers.copy(), len(plan.numbers) - 1
    worse[lane] = worse[lane].max() + 1 - np.minimum(worse[lane], worse[lane].max())
    worse[lane][plan.numbers[lane] == 0] = 0
    write_routes_file(path, replace(plan.routes_file, numbers=worse))
    done = sar_agent("check", "--fabric", spec, "--routes", path)
    assert done.returncode == 1
    named = f"lane {lane}: " if name != "lanes hop by hop" else f" in lane {lane} (number"
    assert f"the certificate of {path} is not valid: lane" in done.stderr and named in done.stderr
    assert '"[' in done.stderr and " (number " in done.stderr, "channels by their names"
    done = sar_agent("check", "--fabric", spec, "--routes", path, "--json")
    found = json.loads(done.stdout)["certificate"]
    assert done.returncode == 1 and not found["valid"]
    assert [lane["rising"] for lane in found["lanes"]].count(False) >= 1


@pytest.mark.parametrize("name", FABRICS)
def test_any_wrong_number_is_found(name: str) -> None:
    """The verdict is that of the check that plans must pass."""
    plan, draw = plan_of(name), np.random.default_rng(7)
    proved, senders = plan.proved, plan.routes.senders
    planes = host_planes(plan.fabric, proved, senders)
    outcomes = set()
    for _ in range(200):
        numbers = plan.numbers.copy()
        at = tuple(draw.choice(np.argwhere(numbers > 0)))
        numbers[at] = draw.integers(0, numbers.max() + 2)
        rises = dependencies_rise(proved.wiring, planes, numbers)
        lanes = judge_certificate(plan.fabric, proved, senders, numbers)
        assert all(lane.rising for lane in lanes) == rises
        assert all(bool(lane.first) == (lane.falling > 0) for lane in lanes)
        outcomes.add(rises)
    assert outcomes == {False, True}


def test_routes_without_a_certificate(tmp_path: Path) -> None:
    plan = plan_of("one lane")
    path = tmp_path / "routes.sar"
    write_routes_file(path, replace(plan.routes_file, numbers=None, loads=None))
    done = sar_agent("check", "--fabric", "xgft:2;4,4;1,2", "--routes", path)
    assert done.returncode == 0 and "certificate" not in done.stdout
