"""The planner's limits on an engine's routes."""

from __future__ import annotations

import pytest

from sar_agent.agent import planner
from sar_agent.config.model import Config
from sar_agent.config.update import UpdateConfig
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import load_engine


@pytest.mark.parametrize("engine", ["sar", "sar-plus"])
def test_a_cap_on_changed_entries_holds(engine: str) -> None:
    tree = load_fabric("xgft:3;4,4,4;1,4,4")
    mixes = [synthetic_mix(tree, seed) for seed in (1, 2)]

    def second(most: int) -> int:
        config = Config(update=UpdateConfig(max_changed_entries=most))
        plans = planner.Planner(config, load_engine(engine))
        first = plans.plan(1, tree, mixes[0])
        then = plans.plan(2, tree, mixes[1], first)
        return then.routes.entries_changed(first.routes)

    free = second(0)
    assert free > 50 >= second(50) and second(10 * free) == free
