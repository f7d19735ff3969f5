"""Orders of the steps of a pass that a user would notice if they were others.

A process that dies between two steps is played by an exception that nothing in the agent catches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.current import Current
from sar_agent.agent.history import History
from sar_agent.agent.outcome import Report, Result
from sar_agent.install.generations import Generations
from sar_agent.opensm import plugin_install
from tests.worlds.agent_world import JOBS, World


class Killed(BaseException):
    """The process ends here."""


def killed(*_: object, **__: object) -> Any:
    raise Killed


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Generation 1 is in force, and one job has ended since."""
    world = World(tmp_path)
    world.once()
    world.source.records = JOBS[:1]
    return world


def on_disk(world: World) -> tuple[int, list[int], list[int]]:
    """The generation of the state, those that are kept, and those in the history."""
    folder = world.folder / "state"
    state = world.restart().installed.store.load()
    assert state is not None
    rows = [row.generation for row in History(folder).last(9)]
    return state.generation, Generations(folder).numbers(), sorted(rows)


@pytest.mark.parametrize(
    ("dies", "disk"),
    [
        (lambda agent: agent.manager.install, (1, [1], [1])),
        (lambda agent: agent.installed.generations.add, (1, [1], [1])),
        (lambda agent: agent.installed.store.save, (1, [1, 2], [1])),
        (lambda agent: agent.committer.decisions.add, (2, [1, 2], [1])),
        (lambda agent: agent.publisher.rerouted, (2, [1, 2], [1, 2])),
    ],
    ids=["install", "kept file", "state", "history", "metrics"],
)
def test_no_record_claims_more_than_those_before_it(
    world: World, dies: Callable[[Any], Any], disk: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept file, state, history, metrics: in this order, and after the tables were read back."""
    step = dies(world.agent)
    monkeypatch.setattr(step.__self__, step.__name__, killed)
    with pytest.raises(Killed):
        world.once()
    assert on_disk(world) == disk
    report = world.once()
    assert report.ok
    assert world.once().result is Result.NOTHING
    assert world.value("sar_agent_generation_installed") == world.bridge.generation


def test_an_interrupted_install_is_finished_before_a_plan_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Died after OpenSM had the routes, before `routes.sar` was them: an OpenSM that starts now
    would bring back the old ones."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(plugin_install, "_rename", killed)
        world.once()
    monkeypatch.setattr(world.restart().planner, "plan", killed)
    with pytest.raises(Killed):
        world.once()
    world.bridge.start_again()
    assert world.bridge.generation == 2


class Notebook:
    """An observer that writes down what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool, Result]] = []

    def after_pass(self, current: Current, site: object, report: Report) -> None:
        self.seen.append((current.identity, site is not None, report.result))


def test_observers_are_told_of_every_pass_when_all_is_on_record(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    notes = Notebook()
    broken = SimpleNamespace(after_pass=lambda *_: 1 / 0)
    world.agent.observers = {"broken": broken, "notes": notes}
    assert world.once().ok
    assert "unexpected ZeroDivisionError in after_pass of the service broken" in caplog.text
    (identity, saw, result), *_ = notes.seen
    assert (saw, result) == (True, Result.INSTALLED)
    assert identity == world.agent.manager.status().identity, "not that of the pass's beginning"

    world.agent.observer.observe = lambda current: 1 / 0  # type: ignore
    assert not world.once().ok
    assert notes.seen[1:] == [(identity, False, Result.FAILED)], "what is in force stays known"


def test_a_restart_makes_it_again(world: World) -> None:
    world.source.records = JOBS
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
