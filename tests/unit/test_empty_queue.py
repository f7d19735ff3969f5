"""A queue that shows no job any more is believed where none of their nodes is allocated."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from tests.worlds.agent_world import JOBS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def empty_looks(world: World, seconds: int) -> set[Result]:
    """The results of passes every two seconds of so many, while squeue shows no job."""
    world.source.records, results = (), set[Result]()
    pace, began = world.agent.observer._pace, time.monotonic()
    for past in range(0, seconds + 1, 2):
        pace.clock = lambda past=past: began + past  # type: ignore[misc]
        results.add(world.once().result)
    return results


@pytest.mark.parametrize("busy", [frozenset({"n005"}), None])
@pytest.mark.parametrize("restarted", [False, True])
def test_an_empty_queue_changes_nothing_while_nodes_are_allocated(
    world: World, busy: frozenset[str] | None, restarted: bool
) -> None:
    """squeue succeeded and showed nothing, and all jobs' routes were replaced."""
    world.once()
    tables = world.bridge.tables
    if restarted:
        world.restart()
    world.source.busy = busy
    unknown = Result.FAILED if restarted else Result.NOTHING
    assert empty_looks(world, 60) == {unknown}
    assert world.bridge.loads == [1] and world.bridge.tables is tables
    problem = world.agent.observer.queue.problem
    assert ("n005 are allocated" if busy else "sinfo fails (test)") in problem
    if restarted:
        return
    world.source.records = JOBS
    assert world.once().result is Result.NOTHING
    assert empty_looks(world, 298) == {Result.NOTHING}, "the five minutes begin again"
    assert empty_looks(world, 300) >= {Result.INSTALLED}


def test_the_end_of_the_last_job_is_followed_at_once(world: World) -> None:
    world.once()
    world.source.records = ()
    assert (world.once().reason, world.bridge.loads) == (Reason.JOBS, [1, 2])


def test_a_source_that_knows_no_nodes_waits_five_minutes(world: World) -> None:
    world.once()
    world.agent.observer.source = SimpleNamespace(poll=world.source.poll)
    assert empty_looks(world, 298) == {Result.NOTHING}
    assert "its source cannot say" in world.agent.observer.queue.problem
    assert empty_looks(world, 300) >= {Result.INSTALLED}
