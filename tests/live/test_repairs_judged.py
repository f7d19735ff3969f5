"""The plugin's repairs after random failures, judged by ibdmchk, a checker that is not ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import RoutesFile
from tests.worlds.fabric_texts import without_dead
from tests.worlds.live.ibdmchk import ibdmchk
from tests.worlds.repair_program import repairing
from tests.worlds.repairs import Failure, failures, plan_of

pytestmark = pytest.mark.live
CASES = [
    ("xgft:2;6,6;1,4", "sar-plus"),
    ("xgft:3;3,3,3;1,3,3", "sar-plus"),
    ("torus:3x3x3", "updn"),
    ("dragonfly:a=4,h=2,p=1", "updn"),
]


@pytest.mark.parametrize(
    "count", [5, pytest.param(125, marks=pytest.mark.long)], ids=["some", "many"]
)
@pytest.mark.parametrize(("spec", "engine"), CASES)
def test_no_credit_loop_after_a_repair(spec: str, engine: str, count: int, tmp_path: Path) -> None:
    """`count` failures that the plugin repairs; those that it does not are left to others."""
    fabric, plan, rng = load_fabric(spec), plan_of(spec, engine), np.random.default_rng(7)
    assert plan is not None
    judged, drawn = 0, 0
    with repairing(plan, tmp_path) as program:
        while judged < count:
            drawn += 1
            assert drawn < 4 * count
            failure = failures(plan, rng, str(rng.choice(["cable", "few", "spine"])))
            program.load(plan)
            done = program.go(failure.commands())
            while done.entries and done.later:
                done = program.go(failure.commands())
            if done.refusal:
                continue
            folder = tmp_path / str(drawn)
            folder.mkdir()
            live = without(fabric, plan, failure, folder)
            routes = file_to_routes(live, replace(plan, forwarding=program.now))
            assert "no credit loops found" in ibdmchk(live, routes, folder), failure
            judged += 1
    print(spec, judged, "repairs of", drawn, "failures judged")


def without(fabric: Fabric, plan: RoutesFile, failure: Failure, folder: Path) -> Fabric:
    """The fabric after a failure, whose switches are rows of the plan, without dead ones."""
    row = np.searchsorted(plan.switch_guids, fabric.switch_guid)
    ends = zip(row[fabric.channel_source].tolist(), fabric.channel_port.tolist(), strict=True)
    dead = [c for c, end in enumerate(ends) if end in failure.cables]
    gone = np.flatnonzero(np.isin(row, list(failure.switches))).tolist()
    return without_dead(fabric.with_links_down(dead).with_switches_down(gone), folder)
