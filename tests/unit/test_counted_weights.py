"""`[counters] weights = "use"`: when a pass makes routes for counted weights, and when not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import History
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.agent.state import SavedHold
from sar_agent.config.counters import CountersConfig
from sar_agent.errors import CheckFailed
from tests.fake_opensm import job
from tests.unit.test_loop import World

JOBS = tuple(job(str(i), f"n00{i}", f"n00{4 + i}") for i in (1, 2, 3, 4))
"""Each on the first and the second leaf switch, between which there are two paths."""


class Weighing(World):
    """An agent that uses weights, which the test says in place of counters."""

    def __init__(self, folder: Path, **counters: object) -> None:
        super().__init__(folder)
        self.source.records = JOBS
        settings = CountersConfig.model_validate({"weights": "use"} | counters)
        config = self.agent.config.model_copy(update={"counters": settings})
        self.agent = build_agent(config, self.bridge.manager, self.source)
        assert self.once().result is Result.INSTALLED

    def together(self) -> tuple[str, str]:
        """Two jobs that share a link upwards from the first leaf switch."""
        traffic = self.agent.page.pages._traffic_of(self.agent.page.pages._snapshot)
        assert traffic is not None
        for c in np.flatnonzero(traffic.fabric.channel_source == 0):
            at = np.flatnonzero(traffic.lists.channel[: traffic.lists.offset[-1]] == c)
            users = np.searchsorted(traffic.lists.offset, at, side="right") - 1
            if len(users) >= 2:
                a, b = (traffic.mix.jobs[int(j)].id for j in users[:2])
                return a, b
        raise AssertionError("four jobs on two links")

    def count(self, weights: dict[str, float]) -> None:
        self.agent.counted.counted.weights.weights = weights

    def largest(self) -> float:
        value = self.value("sar_agent_channel_load_max", routes="in_force")
        assert value is not None
        return value


def skewed(world: Weighing) -> dict[str, float]:
    """Two jobs on one link send at full speed, the others hardly."""
    return {j.id: 1.0 if j.id in world.together() else 0.06 for j in JOBS}


def test_two_heavy_jobs_on_one_link_are_taken_apart(tmp_path: Path) -> None:
    world = Weighing(tmp_path)
    assert world.once().result is Result.NOTHING, "nothing was counted yet"
    light = skewed(world)
    world.count(light)
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.WEIGHTS), report
    assert "counted weights of 2 jobs changed" in report.sentence
    a, b = (j for j, weight in light.items() if weight == 1.0)
    mix = world.agent.page._mix
    assert mix is not None
    assert {j.id: j.weight for j in mix.jobs} == {
        j.id: 1.0 if j.id in (a, b) else 1 / 16 for j in JOBS
    }
    row = History(tmp_path / "state").last(1)[0]
    assert row.reason == "weights_counted" and row.before and row.predicted
    assert row.predicted["load_max"] < 0.6 * row.before["load_max"]
    assert world.largest() == pytest.approx(row.predicted["load_max"])
    assert world.once().result is Result.NOTHING
    world.count({j.id: 1.0 if j.id not in (a, b) else 0.06 for j in JOBS})
    assert world.once().result is Result.NOTHING, "weights_interval_seconds have not passed"


def test_what_gains_too_little_changes_nothing(tmp_path: Path) -> None:
    world = Weighing(tmp_path)
    world.count({j.id: 0.06 for j in JOBS})  # all alike: other routes cannot gain
    before = world.value("sar_agent_generation_in_force")
    assert world.once().result is Result.NOTHING
    assert world.value("sar_agent_generation_in_force") == before
    assert world.agent.counted.levels.levels == {}


@pytest.mark.parametrize("weights", ["off", "observe"])
def test_without_consent_no_route_changes(tmp_path: Path, weights: str) -> None:
    world = Weighing(tmp_path, weights=weights)
    world.count(skewed(world))
    assert world.once().result is Result.NOTHING


def test_held_routes_stay(tmp_path: Path) -> None:
    world = Weighing(tmp_path)
    world.count(skewed(world))
    store = world.agent.installed.store
    state = store.load()
    assert state is not None
    store.save(state.model_copy(update={"hold": SavedHold.lasting(state.jobs, 600)}))
    assert world.once().result is Result.NOTHING
    store.save(state)
    assert world.once().reason is Reason.WEIGHTS


def test_what_a_user_says_counts_more(tmp_path: Path) -> None:
    world = Weighing(tmp_path)
    light = skewed(world)
    world.source.records = tuple(
        j._replace(traffic="weight=1") if light[j.id] < 1 else j for j in JOBS
    )
    world.count(light)
    world.once()
    assert not set(world.agent.counted.levels.levels) & {j for j in light if light[j] < 1}


def test_a_plan_that_fails_leaves_the_old_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Weighing(tmp_path)
    world.count(skewed(world))
    agent: Agent = world.agent

    def fails(*_: object) -> None:
        raise CheckFailed("a loop")

    monkeypatch.setattr(agent.planner, "plan", fails)
    report = world.once()
    assert (report.result, report.reason) == (Result.FAILED, Reason.WEIGHTS)
    assert agent.counted.levels.levels == {} and agent.counted.levels.weights == {}
    monkeypatch.undo()
    assert world.once().result is Result.NOTHING, "looked at again only after a while"
