"""Reroutes that the pacer allows or postpones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import DECISION
from sar_agent.agent.outcome import Result
from sar_agent.agent.reroute_pacer import AS_GOOD, STALE, TOO_LITTLE, Pacing
from sar_agent.routing.template import template_of
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import job


def paced(
    folder: Path, interval: float = 30, min_install: float = 5, min_gain: float = 0
) -> tuple[World, Pacing]:
    """Its first routes are installed."""
    world = World(
        folder,
        interval_seconds=interval,
        min_install_interval_seconds=min_install,
        min_gain=min_gain,
        max_staleness_seconds=1000,
    )
    world.agent.pacing.patient = True
    assert world.once().result is Result.INSTALLED
    return world, world.agent.pacing


def later(pacing: Pacing) -> None:
    """A thousand seconds pass."""
    clock = pacing.pace.clock
    pacing.pace.clock = lambda: clock() + 1000


def test_jobs_wait_for_the_last_install_and_a_dead_link_does_not(tmp_path: Path) -> None:
    world, pacing = paced(tmp_path, min_install=1000)
    world.source.records = JOBS[:1]
    report = world.once()
    assert (report.result, report.reason, report.ok) == (Result.LATER, Reason.JOBS, True)
    assert "the next may be in" in report.sentence
    assert world.bridge.loads == [1]
    world.cut()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FABRIC)
    world.source.records = JOBS
    assert "the next may be in" in world.once().sentence
    later(pacing)
    assert "the next may be in" not in world.once().sentence


JOIN = job("3", "n003", "n007", "n010", "n013", "n004", "n008", "n011", "n014")
"""With `JOBS`, two of its hosts a leaf: on the routes without it, links are overloaded."""


def planning(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by each plan."""
    plans: list[int] = []
    planner = world.agent.planner
    plan = planner.plan
    monkeypatch.setattr(planner, "plan", lambda *given: plans.append(1) or plan(*given))
    return plans


def test_a_plan_with_too_little_gain_is_made_once_and_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, pacing = paced(tmp_path, min_install=0, min_gain=0.9)
    world.source.records = (*JOBS, JOIN)
    monkeypatch.setattr(world.agent.pacing, "_gain", lambda *_: 0.5)
    plans = planning(world, monkeypatch)
    for _ in range(3):
        report = world.once()
        assert report.result is Result.LATER and "too little" in report.sentence
    assert len(plans) == 1 and world.bridge.loads == [1]
    assert world.value("sar_agent_reroutes_total", reason="jobs_changed", result="later") == 1
    assert [row.reason for row in world.agent.committer.decisions.history.last(9)] == ["first"]
    later(pacing)
    assert world.once().result is Result.INSTALLED, "stale"
    assert world.once().result is Result.NOTHING


def capped(world: World, entries: int) -> None:
    config = world.agent.config
    update = config.update.model_copy(update={"max_changed_entries": entries})
    world.agent.planner.config = config.model_copy(update={"update": update})
    world.agent.updates.config = update


def test_a_cap_counts_from_what_is_in_force_and_not_from_plans_that_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plan that `min_gain` held back was the base of the next, so the tables drifted, and no
    install was allowed until the agent was restarted."""
    world, pacing = paced(tmp_path, min_install=0)
    capped(world, 4)
    hosts = sorted(world.fabric.hosts)
    installed = world.agent.current.last
    with monkeypatch.context() as held:
        held.setattr(pacing, "held_back", lambda *_: "too little (test)")
        for seed in range(4):
            Random(seed).shuffle(hosts)
            world.source.records = tuple(job(f"{i}", *hosts[4 * i : 4 * i + 4]) for i in range(4))
            assert world.once().result is Result.LATER
            assert world.agent.current.last is installed
    pacing.config = pacing.config.model_copy(update={"min_gain": 0.0})  # every change is acted on
    assert world.once().result is Result.INSTALLED


@pytest.mark.parametrize("reason", [Reason.FIRST, Reason.FALLBACK, Reason.FABRIC])
def test_a_cap_refuses_no_repair(tmp_path: Path, reason: Reason) -> None:
    world = World(tmp_path)
    world.source.records = (*JOBS, JOIN)
    if reason is not Reason.FIRST:
        world.once()
    if reason is Reason.FABRIC:
        world.cut()
        world.bridge.fabric = world.fabric
    if reason is Reason.FALLBACK:
        world.bridge.fall_back()
    capped(world, 1)
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, reason)
    history = world.agent.committer.decisions.history
    (row,) = history.last(1, DECISION)
    assert row.entries_changed and row.entries_changed > 1


@pytest.mark.parametrize("min_gain", [0.001, 0.9])
def test_a_job_that_ends_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_gain: float
) -> None:
    world, pacing = paced(tmp_path, min_install=0, min_gain=min_gain)
    world.source.records = JOBS[:1]
    plans = planning(world, monkeypatch)
    for _ in range(3):
        report = world.once()
        assert (report.result, report.reason) == (Result.LATER, Reason.JOBS)
        assert AS_GOOD in report.sentence
        assert STALE not in pacing.pace, "no look is due because of it"
    assert len(plans) == 1 and world.bridge.loads == [1]


def test_after_a_while_without_jobs_the_template_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, pacing = paced(tmp_path, min_install=0, min_gain=0.001)
    world.source.records = JOBS[:1]
    assert AS_GOOD in world.once().sentence
    world.source.records = ()
    report = world.once()
    assert report.result is Result.LATER and "too little" in report.sentence
    assert world.bridge.loads == [1]
    assert pacing.pace.left(STALE) > 900, "since the last job ended"
    later(pacing)
    assert world.once().result is Result.INSTALLED
    fabric, plan = world.fabric, world.agent.current.last
    assert plan is not None and not plan.mix.jobs
    assert np.array_equal(plan.routes.egress[0], template_of(fabric).egress)
    assert world.once().result is Result.NOTHING and world.bridge.loads == [1, 2]


class Found(NamedTuple):
    """Stands in for measures."""

    times: tuple[float, ...]
    effective_efi_max: int = 1

    @property
    def collective_times(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array(self.times)


RINGS_MEET, MENDED = (1.2, 1.3, 1.4), (1.2, 1.3, 1.0)
"""All at once, pairwise, ring."""


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        ((1.5, 1.0), (1.49, 1.0), AS_GOOD),
        ((1.5, 1.0), (1.4, 1.0), ""),
        ((1.0, 1.2), (1.0, 1.0), ""),
        ((1.0, 1.2), (1.0, 1.195), AS_GOOD),
        ((1.0, 1.0), (1.5, 1.5), AS_GOOD),
        (RINGS_MEET, MENDED, ""),
        ((1.5, 1.0), (1.0, 1.2), AS_GOOD),  # one collective would pay for another one
        ((1.0, 1.04), (1.0, 1.0), TOO_LITTLE),
    ],
)
def test_no_plan_without_a_gain(
    before: tuple[float, ...], after: tuple[float, ...], held: str, tmp_path: Path
) -> None:
    world, _ = paced(tmp_path, min_install=0, min_gain=0.05)
    site = world.agent.observer.observe()
    plan: Any = SimpleNamespace(measures=Found(after), mix=SimpleNamespace(jobs=JOBS))

    def why(reason: Reason) -> str:
        return world.agent.pacing.held_back(reason, site, Found(before), plan)  # type: ignore[arg-type]

    assert why(Reason.JOBS) == held
    assert why(Reason.FABRIC) == "", "a repair never waits"
