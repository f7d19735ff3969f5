"""What the pacer let a pass do, and what they put off."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.ended_jobs import EMPTY_AGAIN
from sar_agent.agent.outcome import Result
from sar_agent.agent.reroute_pacer import PaceLimits, ReroutePacer
from tests.unit.test_loop import JOBS, World


def paced(folder: Path, **pace: float) -> tuple[World, ReroutePacer]:
    """Its first routes are installed."""
    world, pacer = World(folder), ReroutePacer(PaceLimits(**pace))
    world.agent.pacing.pacer = pacer
    assert world.once().result is Result.INSTALLED
    return world, pacer


def test_jobs_wait_for_the_last_install_and_a_dead_link_does_not(tmp_path: Path) -> None:
    world, pacer = paced(tmp_path, min_install=1000, max_staleness=1000)
    world.source.records = JOBS[:1]
    report = world.once()
    assert (report.result, report.reason, report.ok) == (Result.LATER, Reason.JOBS, True)
    assert "the next may be in" in report.sentence
    assert world.bridge.loads == [1]
    world.cut()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FABRIC)
    world.source.records = JOBS
    assert world.once().result is Result.LATER
    pacer._installed -= 1000
    assert world.once().result is Result.INSTALLED


def test_what_brings_too_little_is_planned_once_and_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, pacer = paced(tmp_path, min_install=0, min_gain=0.9, max_staleness=1000)
    world.source.records = JOBS[:1]
    plans = []
    planner = world.agent.planner
    plan = planner.plan
    monkeypatch.setattr(planner, "plan", lambda *given: plans.append(1) or plan(*given))
    for _ in range(3):
        report = world.once()
        assert report.result is Result.LATER and "too little" in report.sentence
    assert len(plans) == 1 and world.bridge.loads == [1]
    assert world.value("sar_agent_reroutes_total", reason="jobs_changed", result="later") == 1
    assert [row.reason for row in world.agent.committer.decisions.history.last(9)] == ["first"]
    pacer._changed -= 1000
    assert world.once().result is Result.INSTALLED, "stale"
    assert world.once().result is Result.NOTHING


def test_without_a_wish_for_gain_every_change_is_worth_it(tmp_path: Path) -> None:
    world, _ = paced(tmp_path, min_install=0)
    world.source.records = JOBS[:1]
    assert world.once().result is Result.INSTALLED


def test_a_queue_that_has_become_empty_is_read_again_soon(tmp_path: Path) -> None:
    """It is believed only then, and keys of ended jobs must not wait for the next poll."""
    world, pacer = paced(tmp_path, interval=1000, min_install=0)
    world.source.records = ()
    left = []
    for _ in range(3):
        begun = time.monotonic()
        pacer.begin(begun)
        world.once()
        pacer.end(begun)
        left.append(pacer.look_at() - time.monotonic())
    assert left[0] <= EMPTY_AGAIN and min(left[1:]) > 100
