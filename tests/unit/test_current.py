"""The state in force is one value, and can be made again from the disk and the subnet manager."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from tests.worlds.agent_world import JOBS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.once()
    return world


def test_a_restart_makes_it_again(world: World) -> None:
    before = world.agent.current
    agent = world.restart()
    assert world.once().result is Result.NOTHING
    now = agent.installed.know_plan(agent.current, world.fabric)
    assert now.state == before.state
    assert now.identity == before.identity == world.agent.manager.status().identity
    assert now.plan and before.plan and now.planned and before.planned
    assert now.plan.routes.digest == before.plan.routes.digest
    assert np.array_equal(now.plan.numbers, before.plan.numbers), "the certificate in force"
    assert np.array_equal(now.planned.routes.egress, before.planned.routes.egress)
    assert now.measures and before.measures
    assert np.array_equal(now.measures.channel_load, before.measures.channel_load)


def test_a_pass_that_fails_leaves_it_as_it_was(world: World) -> None:
    before = world.agent.current
    world.source.records = JOBS[:1]
    world.bridge.refuse = ["no (test)"]
    assert world.once().result is Result.FAILED
    after = world.agent.current
    assert (after.plan, after.last, after.state) == (before.plan, before.last, before.state)
    assert world.once().result is not Result.NOTHING, "tried again"
